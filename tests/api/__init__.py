"""Tests of the HTTP service on a control store and a serving file made by hand."""
