/* What a profile comes to: of each step, by operation, and by where in the model's modules. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/profile.h"

/* Of the type that the tensor cores multiply; f32 of the ordinary cores without any. */
static zc_peak peak_of(const zc_step_info *i)
{
    const char *dot = i->products ? strrchr(i->products, '.') : NULL;
    for (int p = 0; dot && p < ZC_PEAK_COUNT; p++)
        if (strcmp(zc_peak_name((zc_peak)p), dot + 1) == 0) return (zc_peak)p;
    return ZC_PEAK_F32;
}

static void bind(cli_reach *to, double share, const char *by)
{
    if (share <= to->share) return;
    to->share = share;
    to->bound = by;
}

cli_reach cli_profile_reach(const cli_profile_step *s, const zc_peaks *peaks)
{
    const zc_step_info *i = &s->info;
    double seconds = s->time.mid * 1e-6;
    cli_reach out = {.bytes = i->bytes_in + i->bytes_out,
                     .operations = i->operations,
                     .intensity = -1,
                     .peak = peak_of(i),
                     .share = -1,
                     .bound = ""};
    if (out.operations > 0 && out.bytes > 0) out.intensity = out.operations / out.bytes;
    if (seconds <= 0) return out;
    out.rate = out.bytes / seconds;
    out.speed = out.operations > 0 ? out.operations / seconds : 0;
    if (peaks->bytes <= 0 || out.bytes <= 0) return out;
    double peak = peaks->operations[out.peak];
    bind(&out, peak > 0 ? out.speed / peak : 0, "arithmetic");
    bind(&out, out.rate / peaks->bytes, "memory");
    if (i->kernel) bind(&out, peaks->launch / seconds, "launch");
    return out;
}

/* The first `depth` parts of a path, of which the last part of all is the node's own. */
static size_t module_length(const char *name, int64_t depth)
{
    const char *end = name;
    for (const char *at = name + (*name == '/'); depth > 0; depth--) {
        const char *slash = strchr(at, '/');
        if (!slash) break;
        end = slash;
        at = slash + 1;
    }
    return (size_t)(end - name);
}

static int by_text(const void *a, const void *b)
{
    const cli_group *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static int longest_first(const void *a, const void *b)
{
    const cli_group *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? 1 : -1;
    return by_text(a, b);
}

static const char *text_of(const zc_step_info *i, int64_t by)
{
    if (by == CLI_BY_OPERATION) return i->op;
    if (by != CLI_BY_KERNEL) return i->name;
    return i->kernel ? i->kernel : "";
}

static cli_group group_of(const cli_profile_step *s, int64_t by)
{
    const char *text = text_of(&s->info, by);
    return (cli_group){.text = text,
                       .len = by > 0 ? module_length(text, by) : strlen(text),
                       .steps = 1,
                       .us = s->time.mid,
                       .bytes = s->info.bytes_in + s->info.bytes_out,
                       .operations = s->info.operations > 0 ? s->info.operations : 0};
}

static void join(cli_group *to, const cli_group *g)
{
    to->steps += g->steps;
    to->us += g->us;
    to->bytes += g->bytes;
    to->operations += g->operations;
}

cli_group *cli_profile_groups(const cli_profile *p, int64_t by, size_t *n)
{
    cli_group *groups = zc_calloc(p->n ? p->n : 1, sizeof *groups);
    *n = 0;
    if (!groups) return NULL;
    for (size_t i = 0; i < p->n; i++) groups[i] = group_of(&p->steps[i], by);
    qsort(groups, p->n, sizeof *groups, by_text);
    for (size_t i = 0; i < p->n; i++) {
        if (*n > 0 && by_text(&groups[*n - 1], &groups[i]) == 0)
            join(&groups[*n - 1], &groups[i]);
        else
            groups[(*n)++] = groups[i];
    }
    qsort(groups, *n, sizeof *groups, longest_first);
    return groups;
}

char *cli_group_name(const cli_group *g)
{
    return strndup(g->len ? g->text : "(none)", g->len ? g->len : strlen("(none)"));
}
