-- A small shop: what the legitimate corpus is executed against.
CREATE TYPE mood AS ENUM ('calm', 'busy');
CREATE TABLE customers (id INTEGER, name VARCHAR, country VARCHAR, joined DATE, vip BOOLEAN);
INSERT INTO customers VALUES (1, 'Ada', 'GB', DATE '2023-01-05', true), (2, 'Bo', 'SE', DATE '2023-02-11', false),
  (3, '陈', 'CN', DATE '2023-03-02', true), (4, 'Élodie', 'FR', DATE '2024-01-20', NULL);
CREATE TABLE orders (id INTEGER, customer_id INTEGER, ordered_at TIMESTAMP, amount DECIMAL(12, 2), quantity INTEGER,
  status VARCHAR, region VARCHAR, tags VARCHAR[], meta JSON, address STRUCT(city VARCHAR, zip VARCHAR));
INSERT INTO orders SELECT i, 1 + i % 4, TIMESTAMP '2024-01-01' + INTERVAL (i * 9) HOUR, (10 + i * 1.37)::DECIMAL(12, 2), 1 + i % 5,
  ['paid', 'open', 'refunded'][1 + i % 3], ['north', 'south', 'east'][1 + (i // 3) % 3], ['a', 'b' || (i % 2)],
  json_object('channel', ['web', 'shop'][1 + i % 2], 'items', [i, i + 1]), {'city': 'C' || (i % 3), 'zip': lpad(i::VARCHAR, 5, '0')}
  FROM range(60) r(i);
CREATE TABLE products (sku VARCHAR, title VARCHAR, price DECIMAL(8, 2), weight DOUBLE, state mood);
INSERT INTO products VALUES ('A-1', 'Lamp', 19.90, 1.2, 'calm'), ('B-2', 'Desk', 249.00, 23.5, 'busy'), ('C-3', 'Chair', 89.50, 7.25, NULL);
CREATE TABLE employees (id INTEGER, manager_id INTEGER, name VARCHAR, salary INTEGER);
INSERT INTO employees VALUES (1, NULL, 'Root', 900), (2, 1, 'Left', 500), (3, 1, 'Right', 600), (4, 2, 'Leaf', 300);
CREATE TABLE trades (ticker VARCHAR, traded TIMESTAMP, shares INTEGER);
INSERT INTO trades VALUES ('XYZ', TIMESTAMP '2024-01-02 10:00:03', 10), ('XYZ', TIMESTAMP '2024-01-02 10:00:09', 20);
CREATE TABLE prices (ticker VARCHAR, quoted TIMESTAMP, price DOUBLE);
INSERT INTO prices VALUES ('XYZ', TIMESTAMP '2024-01-02 10:00:00', 1.5), ('XYZ', TIMESTAMP '2024-01-02 10:00:08', 1.7);
CREATE TABLE monthly (region VARCHAR, jan INTEGER, feb INTEGER, mar INTEGER);
INSERT INTO monthly VALUES ('north', 1, 2, 3), ('south', 4, 5, NULL);
CREATE TABLE "Weekly Sales" ("Week No" INTEGER, "Total €" DECIMAL(10, 2));
INSERT INTO "Weekly Sales" VALUES (1, 100.50), (2, 99.25);
CREATE TABLE 订单 (编号 INTEGER, 金额 DECIMAL(10, 2), 地区 VARCHAR);
INSERT INTO 订单 VALUES (1, 12.50, '华东'), (2, 30.00, '华南');
CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid';
CREATE SCHEMA mart;
CREATE TABLE mart.daily AS SELECT ordered_at::DATE AS day, sum(amount) AS amount FROM orders GROUP BY 1;
