/* report.html, embedded (tools/embed.c): one row, and one without a name behind it. */
#ifndef ZC_CLI_REPORT_TEMPLATE_H
#define ZC_CLI_REPORT_TEMPLATE_H

#include "planfile/program.h"

extern const zc_psource report_template[];

#endif
