#include "cli/device.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const char cli_device_help[] =
    "where to run: cpu, cuda[:N], or auto (the GPU if plan and machine have one)";

int cli_set_device(const cli_call *call, void *at, char *value)
{
    cli_device *d = at;
    int64_t ordinal = 0;
    *d = (cli_device){.kind = ZC_DEVICE_CUDA};
    if (strcmp(value, "cpu") == 0)
        d->kind = ZC_DEVICE_CPU;
    else if (strcmp(value, "auto") == 0)
        d->kind = ZC_DEVICE_AUTO;
    else if (strncmp(value, "cuda:", 5) == 0) {
        if (!cli_int(value + 5, 0, 1023, &ordinal))
            return cli_bad_value(call, value, "a GPU's number, as in cuda:0");
        d->ordinal = (int)ordinal;
    } else if (strcmp(value, "cuda") != 0)
        return cli_bad_value(call, value, "cpu, cuda, cuda:N or auto");
    return EXIT_OK;
}

void cli_print_device(const zc_session *session)
{
    zc_device_info i;
    if (zc_session_device(session, &i) != ZC_OK) return;
    printf("on %s", i.name);
    if (i.kind != ZC_DEVICE_CUDA) return;
    printf(" (sm_%d): %zu steps there, %zu on the CPU, %zu computing shapes; %zu launches in %zu "
           "graphs",
           i.arch, i.gpu_steps, i.cpu_steps, i.shape_steps, i.launches, i.graphs);
    if (i.graph_refusal) {
        fputs("; issued without a graph: ", stdout);
        cli_put(stdout, i.graph_refusal);
    }
    if (i.rebuilt)
        printf("; %zu kernels were compiled now because the plan has none for this GPU", i.rebuilt);
}

const char *cli_cpu_name(char buf[CLI_CPU_MAX])
{
    static const char key[] = "model name\t: ";
    char line[sizeof key + CLI_CPU_MAX];
    FILE *in = fopen("/proc/cpuinfo", "re");
    buf[0] = '\0';
    while (in && fgets(line, sizeof line, in)) {
        if (strncmp(line, key, sizeof key - 1) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(buf, CLI_CPU_MAX, "%.*s", CLI_CPU_MAX - 1, line + sizeof key - 1);
        break;
    }
    if (in) (void)fclose(in);
    return buf;
}
