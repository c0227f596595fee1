"""Figures that are computed in Python: one home for each. The API and the build of the marts both read this package.

What the marts compute row by row, such as values and percentages of single balances, is SQL in `dbt_project/macros`.
"""
