/* Text, numbers and cells as HTML. A cell that is sorted by something else than its text has that
 * in data-v. */
#include "cli/report_html.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- text ---- */

void report_text(zc_buf *out, const char *text)
{
    zc_buf plain = {0};
    zc_buf_escape(&plain, text, strlen(text));
    out->failed |= plain.failed;
    for (const char *c = plain.data ? plain.data : ""; *c; c++) {
        static const char special[] = "&<>\"'`";
        static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#96;"};
        const char *at = strchr(special, *c);
        if (at)
            zc_buf_puts(out, names[at - special]);
        else
            zc_buf_append(out, c, 1);
    }
    zc_buf_fini(&plain);
}

void report_bytes(zc_buf *out, double bytes)
{
    if (bytes >= 1e9)
        zc_buf_printf(out, "%.2f GB", bytes * 1e-9);
    else if (bytes >= 1e6)
        zc_buf_printf(out, "%.2f MB", bytes * 1e-6);
    else if (bytes >= 1e3)
        zc_buf_printf(out, "%.2f kB", bytes * 1e-3);
    else
        zc_buf_printf(out, "%.0f B", bytes);
}

void report_time(zc_buf *out, double us)
{
    if (us >= 1e6)
        zc_buf_printf(out, "%.3f s", us * 1e-6);
    else if (us >= 1e3)
        zc_buf_printf(out, "%.3f ms", us * 1e-3);
    else
        zc_buf_printf(out, us > 0 ? "%.2f µs" : "0", us);
}

int report_colour(const report *r, const char *operation)
{
    int i = 0;
    while (i < REPORT_COLOURS && (size_t)i < r->operation_count &&
           strcmp(r->operations[i].text, operation) != 0)
        i++;
    return (size_t)i < r->operation_count ? i : REPORT_COLOURS;
}

/* ---- cells ---- */

void report_cell(const char *text, zc_buf *out)
{
    zc_buf_puts(out, "<td class=\"t\">");
    report_text(out, text);
    zc_buf_puts(out, "</td>");
}

/* A number as it is sorted; the caller prints it and ends the cell. */
void report_begin_number(double v, zc_buf *out)
{
    zc_buf_printf(out, "<td class=\"n\" data-v=\"%.6g\">", fmin(v, DBL_MAX));
}

void report_number(double v, int decimals, zc_buf *out)
{
    report_begin_number(v, out);
    zc_buf_printf(out, "%.*f</td>", decimals, v);
}

void report_nothing(zc_buf *out)
{
    zc_buf_puts(out, "<td class=\"n\" data-v=\"-1\">–</td>");
}

void report_operation(const report *r, const char *op, zc_buf *out)
{
    zc_buf_printf(
        out,
        "<td class=\"o\"><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect "
        "class=\"c%d\" width=\"10\" height=\"10\"/></svg> ",
        report_colour(r, op));
    report_text(out, op);
    zc_buf_puts(out, "</td>");
}
