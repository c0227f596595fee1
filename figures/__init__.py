"""Figures that are computed in Python: one home for each. The API and the build of the marts both read this package.

Values and percentages of single balances are SQL functions of the marts file, in `dbt_project/macros`.
"""
