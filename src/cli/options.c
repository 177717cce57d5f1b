#include "cli/options.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/help.h"

/* Most options of a command; the tables are short. */
#define OPTIONS_MAX 40
/* getopt's value of option i, above every letter. */
#define LONG_VALUE 256

/* ---- the commands ---- */

#define PASS(name, required, summary) " " #name
const char cli_skip_names[] = "all"
#include "passes/passes.def"
    ;
#undef PASS
const char cli_pass_names[] =
#define PASS(name, required, summary) #name " "
#include "passes/passes.def"
#undef PASS
    ;

static const cli_command *const commands[] = {
#define CMD(name) &cli_##name##_command,
#include "cli/commands.def"
#undef CMD
};

const cli_command *cli_command_at(size_t i)
{
    return i < ZC_COUNTOF(commands) ? commands[i] : NULL;
}

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < ZC_COUNTOF(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

/* ---- parsing ---- */

typedef struct getopt_table {
    struct option longs[OPTIONS_MAX + 2];
    char shorts[2 * OPTIONS_MAX + 4];
} getopt_table;

/* The leading ':' makes getopt tell a missing value from an unknown option, and keep quiet. */
static void make_table(const cli_command *c, getopt_table *t)
{
    char *s = t->shorts;
    *s++ = ':';
    *s++ = 'h';
    for (size_t i = 0; i < c->option_count; i++) {
        const cli_option *o = &c->options[i];
        int takes = o->optional ? optional_argument : o->arg ? required_argument : no_argument;
        t->longs[i] = (struct option){o->name, takes, NULL, LONG_VALUE + (int)i};
        if (!o->letter) continue;
        *s++ = o->letter;
        if (o->arg) *s++ = ':';
    }
    *s = 0;
    t->longs[c->option_count] = (struct option){"help", no_argument, NULL, 'h'};
    t->longs[c->option_count + 1] = (struct option){NULL, 0, NULL, 0};
}

static const cli_option *option_of(const cli_command *c, int value)
{
    for (size_t i = 0; i < c->option_count; i++)
        if (value == LONG_VALUE + (int)i || (c->options[i].letter && value == c->options[i].letter))
            return &c->options[i];
    return NULL;
}

static size_t count_prefixed(const cli_command *c, const char *name, size_t len)
{
    size_t n = strncmp("help", name, len) == 0;
    for (size_t i = 0; i < c->option_count; i++) n += strncmp(c->options[i].name, name, len) == 0;
    return n;
}

/* After getopt said '?' or ':' about `word`. */
static int report_bad(const cli_command *c, int answer, const char *word)
{
    const cli_option *o = option_of(c, optopt);
    if (answer == ':' && o) return cli_usage(c->name, "--%s needs a value (%s)", o->name, o->arg);
    if (optopt >= LONG_VALUE || optopt == 'h')
        return cli_usage(c->name, "--%s takes no value (got '%s')", o ? o->name : "help", word);
    if (optopt) return cli_usage(c->name, "unknown option '-%c'", optopt);
    int len = (int)strcspn(word, "=");
    bool is_ambiguous = count_prefixed(c, word + 2, (size_t)len - 2) > 1;
    return cli_usage(c->name, "%s option '%.*s'", is_ambiguous ? "ambiguous" : "unknown", len,
                     word);
}

int cli_check_written(const char *command, const char *option, const char *path,
                      char *const *operands, int n)
{
    for (int i = 0; i < n; i++)
        if (zc_file_is_same(path, operands[i]))
            return cli_usage(command, "--%s: '%s' is what is read", option, path);
    return EXIT_OK;
}

static int check_written(const cli_command *c, const void *state, char *const *operands, int n)
{
    for (size_t i = 0; i < c->option_count; i++) {
        const cli_option *o = &c->options[i];
        const char *path = o->writes ? *(char *const *)((const char *)state + o->at) : NULL;
        if (path && cli_check_written(c->name, o->name, path, operands, n)) return EXIT_USAGE;
    }
    return CLI_GO;
}

int cli_parse(const cli_command *command, int argc, char **argv, void *state)
{
    getopt_table table;
    if (command->option_count > OPTIONS_MAX)
        return cli_usage(command->name, "its table has too many options");
    make_table(command, &table);
    opterr = 0;
    for (int value; (value = getopt_long(argc, argv, table.shorts, table.longs, NULL)) != -1;) {
        if (value == '?' || value == ':') return report_bad(command, value, argv[optind - 1]);
        if (value == 'h') {
            cli_print_help(command);
            return EXIT_OK;
        }
        const cli_option *o = option_of(command, value);
        int code = o->set(&(cli_call){command, o}, (char *)state + o->at, optarg);
        if (code) return code;
    }
    return check_written(command, state, argv + optind, argc - optind);
}

int cli_parse_one(const cli_command *command, int argc, char **argv, void *state, const char *what,
                  const char **operand)
{
    int code = cli_parse(command, argc, argv, state);
    if (code != CLI_GO) return code;
    if (optind + 1 != argc)
        return cli_usage(command->name, "needs %s (got %d)", what, argc - optind);
    *operand = argv[optind];
    return CLI_GO;
}

int cli_bad_value(const cli_call *call, const char *value, const char *need)
{
    return cli_usage(call->command->name, "--%s: got '%s', need %s", call->option->name, value,
                     need);
}

/* ---- setters ---- */

static int too_many(const cli_call *call)
{
    return cli_usage(call->command->name, "too many --%s (need at most %d)", call->option->name,
                     CLI_LIST_MAX);
}

int cli_set_flag(const cli_call *call, void *at, char *value)
{
    *(bool *)at = true;
    return EXIT_OK;
}

int cli_set_tune(const cli_call *call, void *at, char *value)
{
    cli_tune *t = at;
    t->on = true;
    if (!value || (cli_real(value, &t->seconds) && t->seconds > 0 && t->seconds <= 86400))
        return EXIT_OK;
    return cli_bad_value(call, value, "seconds (more than 0, at most 86400)");
}

static bool is_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    for (const char *c = choices; *c;) {
        size_t n = strcspn(c, " ");
        if (n == len && strncmp(c, value, n) == 0) return true;
        c += n + (c[n] == ' ');
    }
    return false;
}

int cli_set_text(const cli_call *call, void *at, char *value)
{
    const char *choices = call->option->choices;
    if (choices && !is_choice(choices, value)) {
        char need[200];
        snprintf(need, sizeof need, strchr(choices, ' ') ? "one of: %s" : "%s", choices);
        return cli_bad_value(call, value, need);
    }
    *(const char **)at = value;
    return EXIT_OK;
}

int cli_set_int(const cli_call *call, void *at, char *value)
{
    const cli_option *o = call->option;
    char need[100];
    if (cli_int(value, o->least, o->most, at)) return EXIT_OK;
    snprintf(need, sizeof need,
             o->most == INT64_MAX ? "a whole number of at least %lld"
                                  : "a whole number from %lld to %lld",
             (long long)o->least, (long long)o->most);
    return cli_bad_value(call, value, need);
}

int cli_set_real(const cli_call *call, void *at, char *value)
{
    const cli_option *o = call->option;
    double v;
    char need[100];
    if (cli_real(value, &v) && v >= (double)o->least && v <= (double)o->most) {
        *(double *)at = v;
        return EXIT_OK;
    }
    snprintf(need, sizeof need, "a number from %lld to %lld", (long long)o->least,
             (long long)o->most);
    return cli_bad_value(call, value, need);
}

int cli_set_positive(const cli_call *call, void *at, char *value)
{
    double v;
    if (!cli_real(value, &v) || !(v > 0) || isinf(v))
        return cli_bad_value(call, value, "a number more than 0");
    *(double *)at = v;
    return EXIT_OK;
}

int cli_set_words(const cli_call *call, void *at, char *value)
{
    char *word, *rest = value;
    while ((word = strsep(&rest, ","))) {
        const char *one = NULL;
        int code = cli_set_text(call, (void *)&one, word);
        if (code == EXIT_OK) code = cli_set_list(call, at, word);
        if (code != EXIT_OK) return code;
    }
    return EXIT_OK;
}

int cli_set_list(const cli_call *call, void *at, char *value)
{
    cli_list *list = at;
    if (list->n == CLI_LIST_MAX) return too_many(call);
    list->v[list->n++] = value;
    return EXIT_OK;
}

/* What an option says of one name it says once. */
static int given_twice(const cli_call *call, const char *name)
{
    return cli_usage(call->command->name, "--%s: '%s' is given twice", call->option->name, name);
}

int cli_set_dim(const cli_call *call, void *at, char *value)
{
    cli_dims *dims = at;
    if (dims->n == CLI_LIST_MAX) return too_many(call);
    char *eq = strrchr(value, '=');
    zc_fixed_dim *d = &dims->v[dims->n];
    if (!eq || eq == value || !cli_int(eq + 1, 0, INT64_MAX, &d->value))
        return cli_bad_value(call, value, "NAME=VALUE with a whole number");
    *eq = 0;
    for (size_t i = 0; i < dims->n; i++)
        if (strcmp(dims->v[i].name, value) == 0) return given_twice(call, value);
    d->name = value;
    dims->n++;
    return EXIT_OK;
}

bool cli_parse_shape(const char *text, zc_fixed_shape *s)
{
    char word[24];
    for (s->rank = 0; *text;) {
        size_t n = strcspn(text, "x");
        if (n >= sizeof word || s->rank == ZC_RANK_MAX) return false;
        memcpy(word, text, n);
        word[n] = 0;
        if (!cli_int(word, 0, INT64_MAX, &s->dims[s->rank++])) return false;
        text += n;
        if (*text && !*++text) return false;
    }
    return true;
}

int cli_set_shape(const cli_call *call, void *at, char *value)
{
    cli_shapes *shapes = at;
    if (shapes->n == CLI_LIST_MAX) return too_many(call);
    char *eq = strrchr(value, '=');
    zc_fixed_shape *s = &shapes->v[shapes->n];
    if (!eq || eq == value || !eq[1] || !cli_parse_shape(eq + 1, s))
        return cli_bad_value(call, value, "NAME=1x3x224x224");
    *eq = 0;
    for (size_t i = 0; i < shapes->n; i++)
        if (strcmp(shapes->v[i].input, value) == 0) return given_twice(call, value);
    s->input = value;
    shapes->n++;
    return EXIT_OK;
}

/* "1,8,32" into sizes. */
static bool parse_sizes(const char *text, int64_t *sizes, size_t *n)
{
    char word[24];
    for (;; text++) {
        size_t len = strcspn(text, ",");
        if (len >= sizeof word || *n == CLI_SIZES_MAX) return false;
        memcpy(word, text, len);
        word[len] = 0;
        if (!cli_int(word, 0, INT64_MAX, &sizes[(*n)++])) return false;
        text += len;
        if (!*text) return true;
    }
}

int cli_set_profile(const cli_call *call, void *at, char *value)
{
    cli_profiles *p = at;
    if (p->n == CLI_PROFILES_MAX)
        return cli_usage(call->command->name, "too many --%s (need at most %d)", call->option->name,
                         CLI_PROFILES_MAX);
    char *eq = strrchr(value, '=');
    zc_profile *one = &p->v[p->n];
    *one = (zc_profile){.name = value, .values = p->sizes[p->n]};
    if (!eq || eq == value || !parse_sizes(eq + 1, p->sizes[p->n], &one->count))
        return cli_bad_value(call, value, "NAME=1,8,32");
    *eq = 0;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, value) == 0) return given_twice(call, value);
    p->n++;
    return EXIT_OK;
}

/* Names may have a '=' too: where the text is cut only the names that there are can tell. */
int cli_set_pair(const cli_call *call, void *at, char *value)
{
    char *eq = strchr(value, '=');
    if (!eq || eq == value || !eq[1]) return cli_bad_value(call, value, call->option->arg);
    return cli_set_list(call, at, value);
}

/* Names may have a ':' too: the last one separates. False after a mistake. */
static bool next_pair(char **rest, char **name, char **text)
{
    *name = strsep(rest, ",");
    char *colon = *name ? strrchr(*name, ':') : NULL;
    if (!colon || colon == *name || !colon[1]) return false;
    *colon = '=';
    *text = colon + 1;
    return true;
}

int cli_set_pairs(const cli_call *call, void *at, char *value)
{
    char *name, *text, *rest = value;
    while (rest) {
        if (!next_pair(&rest, &name, &text))
            return cli_bad_value(call, name, "NAME:FILE, more of them with commas");
        int code = cli_set_list(call, at, name);
        if (code) return code;
    }
    return EXIT_OK;
}

int cli_set_named(const cli_call *call, void *at, char *value)
{
    char *name, *text, *rest = value;
    while (rest) {
        if (!next_pair(&rest, &name, &text))
            return cli_bad_value(call, name, "NAME:1x3x224x224, more of them with commas");
        int code = cli_set_shape(call, at, name);
        if (code) return code;
    }
    return EXIT_OK;
}
