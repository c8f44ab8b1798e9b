"""The tables that the cases of the audit speak about."""

from __future__ import annotations

FLIGHTS = {
    "flights": [
        ["airport", "flights", "late", "cancelled", "mean delay (min)", "on-time rate"],
        ["JFK", "6,077", "512", "31", "12.4", "91.6%"],
        ["LGA", "5,200", "700", "55", "9.3", "86.5%"],
        ["EWR", "5,723", "645", "40", "15.1", "88.7%"],
    ]
}
COMPANY = {
    "results": [
        ["USD millions"],
        ["", "2022", "2023", "2024"],
        ["Revenue", "100.0", "120.0", "150.0"],
        ["Operating cost", "80.0", "90.0", "99.0"],
        ["Net loss", "4.0", "6.5", "2.5"],
        ["Cash flow", "12.0", "(3.5)", "8.0"],
        ["Margin (%)", "20.0", "25.0", "34.0"],
        ["Employees", "1,000", "1,100", "900"],
    ]
}
SALES_ZH = {
    "销售": [
        ["单位：万元"],
        ["城市", "销售额", "成本", "同比(%)"],
        ["北京", "1200", "800", "8.1"],
        ["上海", "900", "700", "-3.2"],
        ["广州", "600", "400", "5.0"],
    ]
}
WEEKS = {
    "weeks": [
        ["airport", "week", "flights", "cancelled"],
        ["JFK", "2013-W06", "2,110", "12"],
        ["JFK", "2013-W07", "2,000", "40"],
        ["LGA", "2013-W06", "1,900", "9"],
        ["LGA", "2013-W07", "1,746", "77"],
    ]
}
MONTHS_ZH = {
    "月报": [
        ["月份", "订单数", "退货率", "客单价（元）"],
        ["1月", "12,340", "0.031", "86.5"],
        ["2月", "10,120", "0.028", "91.2"],
        ["3月", "13,905", "0.035", "88.0"],
    ]
}
PIVOT = {
    "passengers (thousands)": [
        ["month", "JFK", "LGA", "EWR"],
        ["January", "2,310", "1,120", "1,890"],
        ["February", "2,105", "1,045", "1,760"],
        ["March", "2,590", "1,270", "2,015"],
        ["Total", "7,005", "3,435", "5,665"],
    ]
}
REGIONS = {
    "regions": [
        ["Region", "Customers", "Churn rate", "ARPU (€)", "Revenue (€m)"],
        ["North", "41,250", "0.021", "18.40", "9.11"],
        ["South", "38,900", "0.034", "17.95", "8.38"],
        ["East", "22,615", "0.019", "21.10", "5.73"],
        ["West", "30,480", "0.027", "19.25", "7.04"],
    ]
}
TWO_YEARS = {
    "2023": [["store", "sales"], ["Alpha", "310"], ["Beta", "275"]],
    "2024": [["store", "sales"], ["Alpha", "342"], ["Beta", "251"]],
}
RATES = {
    "rates": [
        ["Bond", "Yield (%)", "Spread (bps)", "Change (pp)"],
        ["2Y", "4.25", "35", "0.10"],
        ["10Y", "4.60", "82", "-0.15"],
        ["30Y", "4.85", "110", "-0.05"],
    ]
}
CHANGES = {
    "changes": [
        ["Product", "Growth (%)", "Price decline (%)", "Units"],
        ["Lamp", "-8.1", "2.4", "410"],
        ["Chair", "12.5", "3.9", "1,285"],
        ["Table", "4.0", "0.7", "933"],
    ]
}
MERGED = {
    "merged": [
        ["", "Revenue", "", "Cost", ""],
        ["Segment", "2023", "2024", "2023", "2024"],
        ["Cloud", "410", "505", "300", "352"],
        ["Devices", "720", "668", "590", "571"],
    ]
}
UNIT_COLUMN = {
    "kpi": [
        ["Metric", "Unit", "Q1 2024", "Q2 2024"],
        ["Revenue", "USD m", "210.4", "231.9"],
        ["Gross margin", "%", "41.2", "43.0"],
        ["Delivery time", "days", "5.6", "4.9"],
        ["Orders", "thousand", "88", "97"],
    ]
}
RANKED = {
    "ranked": [
        ["#", "Country", "Founded", "Medals"],
        ["1", "Norway", "1905", "37"],
        ["2", "Germany", "1871", "27"],
        ["3", "Canada", "1867", "26"],
    ]
}
