"""What is borne out and what is not: one sentence a case, a letter for each conclusion in it.

G grounded, D derived, U ungrounded; dates and the like are left out.
"""

from __future__ import annotations

import pytest

from learngraph_kernel.evidence import audit_text

from .tables import (
    AIRLINES,
    CHANGES,
    COMPANY,
    DAILY,
    EARNINGS,
    FLIGHTS,
    KEY_VALUES,
    MERGED,
    MONTHS_ZH,
    PIVOT,
    PRODUCTS,
    RANKED,
    RATES,
    REGIONS,
    REGIONS_ZH,
    SALES_ZH,
    TWO_YEARS,
    UNIT_COLUMN,
    WEEKLY,
    WEEKS,
)

LETTERS = {"grounded": "G", "derived": "D", "ungrounded": "U", "not_a_conclusion": ""}
Tables = dict[str, list[list[str]]]


def verdicts(text: str, tables: Tables) -> str:
    return "".join(LETTERS[finding["status"]] for finding in audit_text(text, tables))


REPORTS = [
    (WEEKLY, "In week 7 of 2013, JFK operated 2,077 flights, up 2.1 % from the week before (2,034).", "GDG"),
    (WEEKLY, "JFK operated 2,077 flights in week 7. On-time performance improved by 6.1 percentage points.", "GD"),
    (WEEKLY, "The mean departure delay at JFK fell from 14.2 to 9.8 minutes.", "GG"),
    (WEEKLY, "The p95 departure delay was 61 minutes at JFK in week 7, compared with 55 at LGA and 70 at EWR.", "GGG"),
    (WEEKLY, "Across the three airports, 6,389 flights were operated in week 7; EWR handled 36.0 % of them.", "DDD"),
    (WEEKLY, "LaGuardia (LGA) cancelled 15 flights in W07, down from 88.", "GG"),
    (WEEKLY, "JFK's mean delay in week 7 was 12.6 minutes.", "U"),
    (WEEKLY, "EWR had the worst mean delay, 12.6 minutes in week 7, 4.5 minutes longer than LGA's 8.1.", "GDG"),
    (WEEKLY, "In week 6 the on-time rate at EWR was 81.1 %.", "U"),
    (WEEKLY, "JFK cancelled 12 flights in week 7, or 0.6 % of its flights.", "GD"),
    (WEEKLY, "2013年第7周，JFK共执行航班2077班，较上周增长2.1%，准点率84.2%，提升6.1个百分点。", "GDGD"),
    (WEEKLY, "第6周JFK取消12班。", "U"),
    (WEEKLY, "JFK averaged 2,055.5 flights per week.", "D"),
    (EARNINGS, "Net sales rose 11.3 % to $1.245 billion from $1.119 billion a year earlier.", "DGG"),
    (EARNINGS, "Gross profit was $443.2 million, or 35.6 % of net sales.", "GD"),
    (EARNINGS, "Operating income increased to $98.5 million from $71.0 million.", "GG"),
    (EARNINGS, "Operating income grew by $27.4 million, or 38.6 %.", "DD"),
    (EARNINGS, "Earnings per share came in at $1.27, up from $0.94.", "GG"),
    (EARNINGS, "Cost of sales was $802.1 million.", "G"),
    (EARNINGS, "The effective tax rate fell 0.6 percentage points to 21.4 %.", "DG"),
    (EARNINGS, "Net sales fell 11.3 % in 2024.", "U"),
    (EARNINGS, "Net sales were $1.119 billion in the quarter ended June 30, 2024.", "U"),
    (EARNINGS, "Net income per share was $1.27 million.", "U"),
    (EARNINGS, "Gross profit was -$443.2 million.", "U"),
    (REGIONS_ZH, "华东营业收入156.3亿元，占全部收入的41.6%。", "GD"),
    (REGIONS_ZH, "华南净利润为10.1亿元，利润率10.2%；华北净利润9.4亿元，利润率7.8%。", "GGGG"),
    (REGIONS_ZH, "合计营业收入375.5亿元，净利润37.7亿元。", "GG"),
    (REGIONS_ZH, "华东员工2.3万人，约为华南的1.5倍。", "GD"),
    (REGIONS_ZH, "华东营业收入比华北多35.8亿元，高29.7%。", "DD"),
    (REGIONS_ZH, "华北营业收入比华东多35.8亿元。", "U"),
    (REGIONS_ZH, "华南净利润为9.4亿元。", "U"),
    (REGIONS_ZH, "华北利润率为11.6%。", "U"),
    (REGIONS_ZH, "华东营业收入1563万元。", "U"),
    (REGIONS_ZH, "华东营业收入一百五十六亿元。", "G"),
    (PRODUCTS, "Widget sales rose 50 % to 150 in 2024 while Gadget fell 10 % to 180.", "DGDG"),
    (PRODUCTS, "Widget fell 50 % and Gadget rose 10 %.", "UU"),
    (PRODUCTS, "Total sales rose from 300 to 330, an increase of 10 %.", "GGD"),
    (PRODUCTS, "Widget made up 45.5 % of 2024 sales.", "D"),
    (PRODUCTS, "Widget made up 54.5 % of 2024 sales.", "U"),
    (PRODUCTS, "Sales of Widget and Gadget were 180 and 150 in 2024.", "UU"),
    (PRODUCTS, "Gadget outsold Widget by 30 in 2024.", "D"),
    (PRODUCTS, "Widget outsold Gadget by 30 in 2024.", "U"),
    (AIRLINES, "United flew 58,665 flights in January and 49,211 in February.", "GG"),
    (AIRLINES, "United flew 49,211 flights in January and 58,665 in February.", "UU"),
    (AIRLINES, "All three airlines fell: United by 16.1 %, Delta by 14.8 % and Envoy by 15.5 %.", "DDDD"),
    (AIRLINES, "Together they flew 133,172 flights in January.", "D"),
    (AIRLINES, "The average was 44,390.7 in January.", "D"),
    (AIRLINES, "Envoy's 26,397 flights were 45.0 % of United's in January.", "GD"),
    (KEY_VALUES, "GMV reached 1.23 million on 4,021 orders.", "GG"),
    (KEY_VALUES, "The conversion rate was 3.12 % and the refund rate 2.4 %.", "GG"),
    (KEY_VALUES, "The conversion rate was 2.4 %.", "U"),
    (KEY_VALUES, "AOV was $307.03.", "G"),
    (DAILY, "On 5 January 2024 there were 402 orders worth €11,870.", "GG"),
    (DAILY, "On January 5 there were 377 orders.", "U"),
    (DAILY, "Orders fell 6.2 % on 6 January.", "D"),
    (DAILY, "1月6日订单377单。", "G"),
    (DAILY, "1月6日订单402单。", "U"),
]

IDENTITY = [
    (FLIGHTS, "JFK had 6,077 flights.", "G"),
    (FLIGHTS, "JFK handled 6077 flights, of which 512 were late.", "GG"),
    (FLIGHTS, "The number was 6,077.", "G"),
    (FLIGHTS, "Some 6,077 aircraft left.", "G"),
    (FLIGHTS, "Flights at JFK averaged a mean delay of 12.4 minutes.", "G"),
    (FLIGHTS, "JFK's mean delay was about 12 minutes.", "G"),
    (FLIGHTS, "JFK's on-time rate was 91.6 %.", "G"),
    (FLIGHTS, "JFK's on-time rate was 92 %.", "G"),
    (FLIGHTS, "JFK's on-time rate was 91.60 %.", "G"),
    (FLIGHTS, "Newark (EWR) cancelled 40 flights.", "G"),
    (FLIGHTS, "- JFK: 6,077\n- LGA: 5,200\n- EWR: 5,723\n", "GGG"),
    (FLIGHTS, "| airport | flights |\n|---|---|\n| JFK | 6,077 |\n| LGA | 5,200 |\n", "GG"),
    (FLIGHTS, "| airport | flights | late |\n|---|---|---|\n| JFK | 6,077 | 512 |\n", "GG"),
    (COMPANY, "Revenue was $150.0 million in 2024.", "G"),
    (COMPANY, "Revenue came to 150 million dollars in 2024.", "G"),
    (COMPANY, "In 2023, revenue was USD 120m.", "G"),
    (COMPANY, "The company employed 900 people in 2024.", "G"),
    (COMPANY, "The net loss was $2.5 million in 2024.", "G"),
    (COMPANY, "Cash flow was -3.5 million dollars in 2023.", "G"),
    (COMPANY, "Cash flow was $(3.5) million in 2023.", "G"),
    (COMPANY, "Margin reached 34 % in 2024, from 25 % in 2023.", "GG"),
    (COMPANY, "Revenue rose from $120.0 million in 2023 to $150.0 million in 2024.", "GG"),
    (COMPANY, "Revenue was $150.0 million in 2024, against $120.0 million a year earlier.", "GG"),
    (SALES_ZH, "北京销售额为1200万元。", "G"),
    (SALES_ZH, "北京销售额为1,200万元，上海为900万元。", "GG"),
    (SALES_ZH, "北京销售额达0.12亿元。", "G"),
    (SALES_ZH, "北京同比增长8.1%，上海同比下降3.2%。", "GG"),
    (SALES_ZH, "上海同比为-3.2%。", "G"),
    (SALES_ZH, "北京和上海的销售额分别为1200万元和900万元。", "GG"),
    (SALES_ZH, "北京销售额一千二百万元。", "G"),
    (SALES_ZH, "销售额：１２００万元。", "G"),
    (WEEKS, "JFK had 2,000 flights in week 7.", "G"),
    (WEEKS, "In week 6, LGA had 1,900 flights and 9 cancelled ones.", "GG"),
    (WEEKS, "Cancelled flights at LGA rose from 9 to 77.", "GG"),
    (MONTHS_ZH, "2月订单数为10,120单。", "G"),
    (MONTHS_ZH, "3月退货率为3.5%。", "G"),
    (MONTHS_ZH, "1月客单价86.5元，2月91.2元。", "GG"),
    (PIVOT, "JFK carried 2.31 million passengers in January.", "G"),
    (PIVOT, "In March, EWR had 2,015 thousand passengers.", "G"),
    (PIVOT, "LGA's total was 3.435 million passengers.", "G"),
    (REGIONS, "Churn in the South was 3.4 %.", "G"),
    (REGIONS, "The North had 41,250 customers and an ARPU of €18.40.", "GG"),
    (REGIONS, "Revenue in the East was €5.73 million.", "G"),
    (REGIONS, "The churn rate was 0.021 in the North.", "G"),
    (TWO_YEARS, "Alpha sold 342 in 2024.", "G"),
    (TWO_YEARS, "In 2023 Beta had sales of 275.", "G"),
    (RATES, "The 10Y yield was 4.60 %, with a spread of 82 bps.", "GG"),
    (RATES, "The 30Y spread stood at 110 basis points.", "G"),
    (RATES, "The 10Y fell by 0.15 percentage points.", "G"),
    (CHANGES, "Lamp growth fell 8.1 %.", "G"),
    (CHANGES, "Chair grew 12.5 %.", "G"),
    (CHANGES, "The price of the lamp fell 2.4 %.", "G"),
    (MERGED, "Cloud revenue was 505 in 2024.", "G"),
    (MERGED, "The cost of devices was 571 in 2024.", "G"),
    (UNIT_COLUMN, "Revenue reached $231.9 million in Q2 2024.", "G"),
    (UNIT_COLUMN, "Gross margin was 43.0 % in the second quarter.", "G"),
    (UNIT_COLUMN, "Delivery time was 4.9 days in Q2 2024.", "G"),
    (UNIT_COLUMN, "There were 97,000 orders in Q2 2024.", "G"),
    (RANKED, "Norway won 37 medals.", "G"),
    (RANKED, "Germany won 27 medals and Canada 26.", "GG"),
]

FABRICATED = [
    (FLIGHTS, "JFK had 6,177 flights.", "U"),
    (FLIGHTS, "There were 4,321 flights.", "U"),
    (FLIGHTS, "JFK's on-time rate was 93.1 %.", "U"),
    (FLIGHTS, "We looked at 12 terminals and 7 gates.", "UU"),
    (COMPANY, "Revenue was $163.0 million in 2024.", "U"),
    (COMPANY, "It opened 4 offices.", "U"),
    (SALES_ZH, "北京销售额为1350万元。", "U"),
    (SALES_ZH, "公司新开了5家门店。", "U"),
    (WEEKS, "JFK had 2,055 flights in week 7.", "U"),
    (MONTHS_ZH, "2月订单数为9,870单。", "U"),
    (REGIONS, "Churn in the South was 2.9 %.", "U"),
    (RANKED, "Norway won 2 medals.", "U"),
    (RANKED, "They sent 3 teams.", "U"),
]

WRONG_LABEL = [
    (FLIGHTS, "JFK had 5,200 flights.", "U"),
    (FLIGHTS, "JFK had 5,200 flights and LGA 6,077.", "UU"),
    (FLIGHTS, "JFK (5,200 flights) beat LGA (6,077 flights).", "UU"),
    (FLIGHTS, "5,200 flights left JFK and 6,077 left LGA.", "UU"),
    (FLIGHTS, "JFK and LGA had 5,200 and 6,077 flights.", "UU"),
    (FLIGHTS, "LGA and JFK had 6,077 and 5,200 flights, respectively.", "UU"),
    (FLIGHTS, "JFK had 6,077 flights, 700 of them late.", "GU"),
    (FLIGHTS, "JFK cancelled 512 flights.", "U"),
    (FLIGHTS, "JFK: 5,200; LGA: 6,077.", "UU"),
    (FLIGHTS, "LGA's on-time rate was 91.6 %.", "U"),
    (FLIGHTS, "| airport | flights | late |\n|---|---|---|\n| JFK | 512 | 6,077 |\n", "UU"),
    (FLIGHTS, "JFK's on-time rate rose 91.6 %.", "U"),
    (COMPANY, "Profit increased 34.0 %.", "U"),
    (REGIONS, "The South has 16.0 % fewer customers than the North.", "U"),
    (FLIGHTS, "| JFK | 5,200 |\n| LGA | 6,077 |\n", "UU"),
    (COMPANY, "Revenue was $120.0 million in 2024.", "U"),
    (COMPANY, "Operating cost was $150.0 million in 2024.", "U"),
    (COMPANY, "Revenue rose from $150.0 million in 2023 to $120.0 million in 2024.", "UU"),
    (SALES_ZH, "北京销售额为900万元，上海为1200万元。", "UU"),
    (SALES_ZH, "北京和上海的销售额分别为900万元和1200万元。", "UU"),
    (SALES_ZH, "北京的成本为1200万元。", "U"),
    (SALES_ZH, "广州同比增长8.1%。", "U"),
    (WEEKS, "JFK had 2,110 flights in week 7.", "U"),
    (WEEKS, "LGA had 2,000 flights in week 7.", "U"),
    (MONTHS_ZH, "2月订单数为12,340单。", "U"),
    (MONTHS_ZH, "1月退货率为3.5%。", "U"),
    (PIVOT, "LGA carried 2.31 million passengers in January.", "U"),
    (PIVOT, "JFK carried 2.59 million passengers in January.", "U"),
    (REGIONS, "Churn in the North was 3.4 %.", "U"),
    (TWO_YEARS, "Alpha sold 310 in 2024.", "U"),
    (TWO_YEARS, "In 2023 Beta had sales of 251.", "U"),
    (RATES, "The 2Y spread was 82 bps.", "U"),
    (MERGED, "Cloud revenue was 410 in 2024.", "U"),
    (MERGED, "Cloud cost was 505 in 2024.", "U"),
    (UNIT_COLUMN, "Revenue was $210.4 million in Q2 2024.", "U"),
    (RANKED, "Canada won 37 medals.", "U"),
]

SIGN_UNIT_SCALE = [
    (CHANGES, "Lamp growth rose 8.1 %.", "U"),
    (CHANGES, "Lamp growth was 8.1 %.", "U"),
    (CHANGES, "Chair fell 12.5 %.", "U"),
    (CHANGES, "The price of the lamp rose 2.4 %.", "U"),
    (CHANGES, "Lamp growth was -8.1 %.", "G"),
    (COMPANY, "Cash flow was $3.5 million in 2023.", "U"),
    (COMPANY, "Revenue was $150.0 billion in 2024.", "U"),
    (COMPANY, "Revenue was $150.0 thousand in 2024.", "U"),
    (COMPANY, "Revenue was $150 in 2024.", "U"),
    (COMPANY, "Revenue was €150.0 million in 2024.", "U"),
    (COMPANY, "Margin was $34.0 million in 2024.", "U"),
    (COMPANY, "Revenue was 150.0 % in 2024.", "U"),
    (COMPANY, "Margin reached 34 percentage points in 2024.", "U"),
    (SALES_ZH, "北京销售额为1200元。", "U"),
    (SALES_ZH, "北京销售额为1200亿元。", "U"),
    (SALES_ZH, "北京销售额为1200万美元。", "U"),
    (SALES_ZH, "上海同比增长3.2%。", "U"),
    (SALES_ZH, "北京同比下降8.1%。", "U"),
    (SALES_ZH, "北京同比增长8.1个百分点。", "U"),
    (MONTHS_ZH, "3月退货率为0.035%。", "U"),
    (MONTHS_ZH, "3月退货率为35%。", "U"),
    (PIVOT, "JFK carried 2,310 million passengers in January.", "U"),
    (REGIONS, "Revenue in the East was £5.73 million.", "U"),
    (REGIONS, "Revenue in the East was €5.73 billion.", "U"),
    (RATES, "The 10Y yield was 4.60 percentage points.", "U"),
    (RATES, "The 10Y spread was 82 %.", "U"),
    (RATES, "The 10Y rose by 0.15 percentage points.", "U"),
    (FLIGHTS, "JFK's mean delay was 12.4 hours.", "U"),
    (FLIGHTS, "JFK's mean delay was 12.4 %.", "U"),
    (UNIT_COLUMN, "Delivery time was 4.9 weeks in Q2 2024.", "U"),
]

ROUNDING = [
    (FLIGHTS, "JFK's on-time rate was 91.63 %.", "U"),
    (FLIGHTS, "JFK's on-time rate was 91.7 %.", "U"),
    (FLIGHTS, "JFK's on-time rate was 91 %.", "U"),
    (FLIGHTS, "JFK's mean delay was 12.43 minutes.", "U"),
    (CHANGES, "Lamp growth was -8.13 %.", "U"),
    (REGIONS, "Revenue in the East was €5.7 million.", "G"),
    (REGIONS, "Revenue in the East was €6 million.", "G"),
    (REGIONS, "Revenue in the East was €5.8 million.", "U"),
    (PIVOT, "JFK carried 2.3 million passengers in January.", "G"),
    (PIVOT, "JFK carried 2.4 million passengers in January.", "U"),
    (COMPANY, "Revenue was $150.04 million in 2024.", "U"),
    (FLIGHTS, "JFK had over 6,000 flights.", "G"),
    (FLIGHTS, "JFK had over 7,000 flights.", "U"),
    (SALES_ZH, "北京销售额超过1100万元。", "G"),
]

RANGES = [
    (FLIGHTS, "Mean delays ranged from 9.3 to 15.1 minutes.", "G"),
    (FLIGHTS, "Mean delays were between 9 and 15 minutes.", "G"),
    (FLIGHTS, "Mean delays were between 5 and 50 minutes.", "U"),
    (FLIGHTS, "On-time rates were 86.5–91.6 %.", "G"),
    (FLIGHTS, "On-time rates were 80–95 %.", "U"),
    (SALES_ZH, "销售额在600万元至1200万元之间。", "G"),
    (SALES_ZH, "销售额在500万元至1500万元之间。", "U"),
]

DERIVED = [
    (FLIGHTS, "JFK had 877 more flights than LGA.", "D"),
    (FLIGHTS, "LGA had 877 fewer flights than JFK.", "D"),
    (FLIGHTS, "LGA had 877 more flights than JFK.", "U"),
    (FLIGHTS, "A total of 17,000 flights left.", "D"),
    (FLIGHTS, "Together the airports had 17,000 flights.", "D"),
    (FLIGHTS, "JFK and LGA together had 11,277 flights.", "D"),
    (FLIGHTS, "JFK had 6,077 and LGA 5,200 flights, 11,277 in total.", "GGD"),
    (FLIGHTS, "A total of 11,277 flights left.", "U"),
    (FLIGHTS, "The total was 11,277 flights, led by JFK and LGA.", "U"),
    (FLIGHTS, "On average, an airport had 5,666.7 flights.", "D"),
    (FLIGHTS, "JFK accounted for 35.7 % of flights.", "D"),
    (FLIGHTS, "LGA accounted for 35.7 % of flights.", "U"),
    (FLIGHTS, "Of JFK's flights, 8.4 % were late.", "D"),
    (FLIGHTS, "Of LGA's flights, 8.4 % were late.", "U"),
    (FLIGHTS, "JFK's on-time rate was 5.1 percentage points higher than LGA's.", "D"),
    (FLIGHTS, "JFK's on-time rate was 5.1 % higher than LGA's.", "U"),
    (FLIGHTS, "JFK's on-time rate was 5.9 % higher than LGA's.", "D"),
    (FLIGHTS, "JFK's on-time rate was 5.1 percentage points lower than LGA's.", "U"),
    (COMPANY, "Revenue rose 25 % in 2024.", "D"),
    (COMPANY, "Revenue fell 25 % in 2024.", "U"),
    (COMPANY, "Revenue rose 25.0 % to $150.0 million in 2024.", "DG"),
    (COMPANY, "Revenue rose 50 % from 2022 to 2024.", "D"),
    (COMPANY, "Revenue rose by $30 million in 2024.", "D"),
    (COMPANY, "Revenue rose to $30 million in 2024.", "U"),
    (COMPANY, "Margin rose 9.0 percentage points in 2024.", "D"),
    (COMPANY, "Margin rose 900 basis points in 2024.", "D"),
    (COMPANY, "Margin rose 9.0 % in 2024.", "U"),
    (COMPANY, "Employees fell 18.2 % in 2024.", "D"),
    (COMPANY, "Revenue was 1.5 times operating cost in 2024.", "D"),
    (COMPANY, "Revenue totalled $370 million for the three years.", "DD"),
    (SALES_ZH, "三城合计销售额2700万元。", "DD"),
    (SALES_ZH, "北京和上海合计销售额2100万元。", "D"),
    (SALES_ZH, "合计销售额2100万元。", "U"),
    (SALES_ZH, "北京销售额占44.4%。", "D"),
    (SALES_ZH, "北京销售额比上海多300万元。", "D"),
    (SALES_ZH, "上海销售额比北京多300万元。", "U"),
    (SALES_ZH, "上海销售额比北京少300万元。", "D"),
    (SALES_ZH, "北京销售额是广州的2倍。", "D"),
    (SALES_ZH, "平均销售额为900万元。", "G"),
    (WEEKS, "JFK flights fell 5.2 % in week 7.", "D"),
    (WEEKS, "JFK flights rose 5.2 % in week 7.", "U"),
    (WEEKS, "Flights at LGA fell by 154 in week 7.", "D"),
    (WEEKS, "JFK had 4,110 flights in total.", "D"),
    (WEEKS, "In week 7 the two airports had 3,746 flights in total.", "DD"),
    (MONTHS_ZH, "2月订单数环比下降18.0%。", "D"),
    (MONTHS_ZH, "2月订单数环比增长18.0%。", "U"),
    (MONTHS_ZH, "3月退货率上升0.7个百分点。", "D"),
    (MONTHS_ZH, "一季度订单总数为36,365单。", "D"),
    (PIVOT, "JFK accounted for 43.5 % of passengers in total.", "D"),
    (PIVOT, "JFK passengers fell 8.9 % in February.", "D"),
    (REGIONS, "The four regions had 133,245 customers in total.", "DD"),
    (REGIONS, "The North has 31.0 % of customers.", "D"),
    (TWO_YEARS, "Total sales were 593 in 2024.", "D"),
    (MERGED, "Cloud revenue rose 23.2 % in 2024.", "D"),
    (MERGED, "Devices revenue fell by 52 in 2024.", "D"),
    (UNIT_COLUMN, "Revenue rose 10.2 % in Q2 2024.", "D"),
]


@pytest.mark.parametrize(("tables", "text", "expected"), IDENTITY)
def test_a_number_that_a_cell_holds_is_grounded(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), FABRICATED)
def test_an_invented_number_is_not_grounded(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), WRONG_LABEL)
def test_a_right_number_under_a_wrong_name_is_not_grounded(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), SIGN_UNIT_SCALE)
def test_a_wrong_sign_unit_or_scale_is_a_mismatch(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), ROUNDING)
def test_a_number_may_be_rounded_but_not_sharper_than_its_cell(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), DERIVED)
def test_a_derivation_counts_where_the_sentence_makes_one(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), REPORTS)
def test_sentences_as_reports_have_them(tables: Tables, text: str, expected: str) -> None:
    assert verdicts(text, tables) == expected


@pytest.mark.parametrize(("tables", "text", "expected"), RANGES)
def test_both_ends_of_a_range_must_be_cells(tables: Tables, text: str, expected: str) -> None:
    assert set(verdicts(text, tables)) == set(expected)
