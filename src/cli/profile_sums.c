/* What a profile comes to: of each step, by operation, and by where in the model's modules. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/profile.h"

cli_reach cli_profile_reach(const cli_profile_step *s, const zc_peaks *peaks)
{
    const zc_step_info *i = &s->info;
    double seconds = s->time.mid * 1e-6;
    cli_reach out = {
        .bytes = i->bytes_in + i->bytes_out, .operations = i->operations, .share = -1, .bound = ""};
    if (seconds <= 0) return out;
    out.rate = out.bytes / seconds;
    out.speed = out.operations > 0 ? out.operations / seconds : 0;
    if (peaks->bytes <= 0 || out.bytes <= 0) return out;
    double memory = out.rate / peaks->bytes,
           arithmetic = peaks->operations > 0 ? out.speed / peaks->operations : 0;
    out.share = memory > arithmetic ? memory : arithmetic;
    out.bound = memory > arithmetic ? "memory" : "arithmetic";
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

static int longest_first(const void *a, const void *b)
{
    const cli_group *x = a, *y = b;
    if (x->us != y->us) return x->us < y->us ? 1 : -1;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : x->len < y->len ? -1 : 1;
}

cli_group *cli_profile_groups(const cli_profile *p, int64_t depth, size_t *n)
{
    cli_group *groups = zc_calloc(p->n ? p->n : 1, sizeof *groups);
    *n = 0;
    for (size_t i = 0; groups && i < p->n; i++) {
        const cli_profile_step *s = &p->steps[i];
        const char *text = depth ? s->info.name : s->info.op;
        size_t len = depth ? module_length(text, depth) : strlen(text), k = 0;
        while (k < *n && (groups[k].len != len || memcmp(groups[k].text, text, len) != 0)) k++;
        if (k == *n) groups[(*n)++] = (cli_group){.text = text, .len = len};
        groups[k].steps++;
        groups[k].us += s->time.mid;
        groups[k].bytes += s->info.bytes_in + s->info.bytes_out;
        if (s->info.operations > 0) groups[k].operations += s->info.operations;
    }
    if (groups) qsort(groups, *n, sizeof *groups, longest_first);
    return groups;
}

char *cli_group_name(const cli_group *g)
{
    return strndup(g->len ? g->text : "(none)", g->len ? g->len : strlen("(none)"));
}
