/* Kernels that rules bring along, run on a GPU for their check. */
#ifndef ZC_CLI_RULE_DEVICE_H
#define ZC_CLI_RULE_DEVICE_H

#include "cli/device.h"
#include "rules/rules.h"

/* For zc_rule_device: runs g on the GPU whose number `user` points to (an int). */
zc_status cli_run_graph(void *user, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                        zc_diag *diag);
/* Refuses rule files with a kernel that computes something else than its meaning on this machine's
 * GPU; without a GPU there is nothing to check. */
zc_status cli_check_kernels(const cli_list *files, zc_diag *diag);

#endif
