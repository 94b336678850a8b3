"""One self-contained page about a fitted model, to read, to print and to hand on."""

from viewmend.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
