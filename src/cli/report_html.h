/* What the report's tables and pictures are made of (report_html.c). */
#ifndef ZC_CLI_REPORT_HTML_H
#define ZC_CLI_REPORT_HTML_H

#include "cli/report.h"

/* For HTML text and quoted attributes: control characters and bytes that are not UTF-8 as \xNN, and
 * no character that means anything there. */
void report_text(zc_buf *out, const char *text);
/* "12.3 MB". */
void report_bytes(zc_buf *out, double bytes);
/* Microseconds as "12.3 µs" or "4.56 ms". */
void report_time(zc_buf *out, double us);
/* The number of the operation's colour. */
int report_colour(const report *r, const char *operation);

void report_cell(const char *text, zc_buf *out);
/* A number as it is sorted; the caller prints it and ends the cell. */
void report_begin_number(double v, zc_buf *out);
void report_number(double v, int decimals, zc_buf *out);
void report_nothing(zc_buf *out);
/* With its colour. */
void report_operation(const report *r, const char *op, zc_buf *out);

#endif
