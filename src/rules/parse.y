/* The grammar of rule files. Values live in the arena of the set, so that what an error discards
 * needs no freeing; the destructor says so for every type. */
%define api.pure full
%define api.prefix {zc_rl_yy}
%define api.location.type {zc_rl_loc}
%define parse.error detailed
%locations
%param {void *scanner}
%parse-param {zc_rl_scan *s}
%expect 0

%code requires {
#include "rules/front.h"
#define ZC_RL_YYLLOC(out, rhs, n)                                                                  \
    do {                                                                                           \
        if (n) (out) = zc_rl_span(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n));                             \
        else (out) = YYRHSLOC(rhs, 0), (out).len = 0;                                              \
    } while (0)
}
%code {
#define YYLLOC_DEFAULT(out, rhs, n) ZC_RL_YYLLOC(out, rhs, n)
#define YYMAXDEPTH 5000
int zc_rl_yylex(ZC_RL_YYSTYPE *value, zc_rl_loc *loc, void *scanner);
static void zc_rl_yyerror(zc_rl_loc *loc, void *scanner, zc_rl_scan *s, const char *text)
{
    zc_rl_syntax_error(s, *loc, text);
}
}

%union {
    const char *text;
    zc_rl_number number;
    zc_rl_list *list;
    zc_rl_expr *expr;
    zc_rl_pat *pat;
    zc_rl_stmt *stmt;
    zc_rl_attr *attr;
    zc_rl_name *name;
    zc_rl_rule *rule;
    zc_rl_braces *braces;
    zc_rl_default *preset;
    zc_rl_clause *clause;
    zc_rl_kernel *kernel;
    unsigned flags;
    zc_rl_kinds kinds;
    zc_rl_times times;
    int op;
}
/* Owned by the arena. */
%destructor { (void)$$; } <*>

%token T_RULE "'rule'" T_POINTWISE "'pointwise'" T_KERNEL "'kernel'" T_MEANING "'meaning'" T_KIND "'kind'" T_PRIORITY "'priority'" T_UNCHECKED "'unchecked'"
%token T_INCLUDE "'include'" T_CONDITION "'condition'" T_PATTERN "'pattern'"
%token T_MATCH "'match'" T_WHERE "'where'" T_EMIT "'emit'" T_IN "'in'" T_UNDERSCORE "'_'" T_BAD "an unreadable word"
%token T_EQ "'=='" T_NE "'!='" T_LE "'<='" T_GE "'>='" T_NEAR "'~='" T_AND "'&&'" T_OR "'||'"
%token T_DOTS "'...'" T_RANGE "'..'"
%token YYEOF 0 "the end of the file"
%token <text> T_NAME "a name" T_STRING "a string" T_TEXT "an expression"
%token <number> T_NUMBER "a number"

%type <list> names statements outs operands alternatives conditions exprs exprs_or_none
%type <list> presets preset_list
%type <preset> preset
%type <clause> clause
%type <kernel> kernel
%type <name> word
%type <rule> rule
%type <text> unchecked
%type <number> priority sign_number tolerance
%type <list> where
%type <stmt> statement
%type <pat> out operand argument call
%type <kinds> kinds kind_list kind
%type <braces> braces attr_list
%type <attr> attr
%type <op> relation rule_kind
%type <times> times
%type <expr> expr

%left T_OR
%left T_AND
%nonassoc T_EQ T_NE '<' '>' T_LE T_GE T_NEAR T_IN
%left '+' '-'
%left '*' '/' '%'
%precedence '!' UNARY

%%

file: %empty | file definition | file error;

/* After an error, what comes before one of these words is skipped. */
rule_word: T_RULE { yyerrok; };
pointwise_word: T_POINTWISE { yyerrok; };
kernel_word: T_KERNEL { yyerrok; };

condition_word: T_CONDITION { yyerrok; };
pattern_word: T_PATTERN { yyerrok; };
include_word: T_INCLUDE { yyerrok; };

definition: include_word T_STRING ';' { zc_rl_include(s, $T_STRING, @T_STRING); }
    | rule { zc_rl_add_rule(s, $rule); }
    | pointwise_word word '(' names presets ')' '=' T_TEXT ';'
        { zc_rl_add_pointwise(s, $word, $names, $presets, $T_TEXT, @T_TEXT); }
    | pointwise_word word '(' names presets ')' '{' T_TEXT '}'
        { zc_rl_add_pointwise(s, $word, $names, $presets, $T_TEXT, @T_TEXT); }
    | condition_word word '(' names ')' '=' conditions ';'
        { zc_rl_add_define(s, $word, $names, $conditions, NULL); }
    | pattern_word word '(' names ')' '{' statements '}'
        { zc_rl_add_define(s, $word, $names, NULL, $statements); }
    | kernel '}' { zc_rl_add_kernel(s, $kernel); };

presets: %empty { $$ = NULL; } | ';' preset_list { $$ = $preset_list; };
preset_list: preset { $$ = zc_rl_append(s, NULL, $preset); }
    | preset_list[list] ',' preset { $$ = zc_rl_append(s, $list, $preset); };
preset: word '=' sign_number { $$ = zc_rl_make_default(s, $word, $sign_number); };

kernel: kernel_word word '(' names ')' '{' { $$ = zc_rl_make_kernel(s, $word, $names); }
    | kernel[k] clause { $$ = $k; zc_rl_add_clause(s, $k, $clause); }
    | kernel[k] T_MEANING '=' T_TEXT ';' { $$ = $k; zc_rl_set_meaning(s, $k, @T_TEXT, $T_TEXT, NULL); }
    | kernel[k] T_MEANING '{' statements '}' { $$ = $k; zc_rl_set_meaning(s, $k, @T_MEANING, NULL, $statements); };
clause: T_NAME exprs ';' { $$ = zc_rl_make_clause(s, @T_NAME, $T_NAME, NULL, $exprs); }
    | T_NAME word '=' expr ';'
        { $$ = zc_rl_make_clause(s, @T_NAME, $T_NAME, $word, zc_rl_append(s, NULL, $expr)); };

word: T_NAME { $$ = zc_rl_make_name(s, $T_NAME, @T_NAME); };
names: word { $$ = zc_rl_append(s, NULL, $word); }
    | names[list] ',' word { $$ = zc_rl_append(s, $list, $word); };

rule: rule_word word rule_kind priority unchecked '{' T_MATCH statements[m] where T_EMIT statements[e] '}'
        { $$ = zc_rl_make_rule(s, $word, $rule_kind, $priority, $unchecked, $m, $where, $e); };
unchecked: %empty { $$ = NULL; }
    | T_UNCHECKED T_STRING { $$ = zc_rl_reason(s, $T_STRING, @T_STRING); };
rule_kind: %empty { $$ = ZC_RULE_KIND_NONE; }
    | T_KIND T_NAME { $$ = zc_rl_rule_kind(s, $T_NAME, @T_NAME); };
priority: %empty { $$ = (zc_rl_number){.is_int = true}; }
    | T_PRIORITY sign_number { $$ = zc_rl_priority(s, $sign_number, @sign_number); };
where: %empty { $$ = NULL; } | T_WHERE conditions ';' { $$ = $conditions; };
conditions: expr { $$ = zc_rl_append(s, NULL, $expr); }
    | conditions[list] ',' expr { $$ = zc_rl_append(s, $list, $expr); };

statements: statement { $$ = zc_rl_append(s, NULL, $statement); }
    | statements[list] statement { $$ = zc_rl_append(s, $list, $statement); };
statement: outs '=' operand ';' { $$ = zc_rl_make_stmt(s, @outs, $outs, $operand); };
outs: out { $$ = zc_rl_append(s, NULL, $out); }
    | outs[list] ',' out { $$ = zc_rl_append(s, $list, $out); };
out: T_NAME kinds { $$ = zc_rl_make_value(s, @T_NAME, $T_NAME, $kinds); }
    | T_UNDERSCORE { $$ = zc_rl_make_pat(s, @$, ZC_RP_ABSENT); };

operand: T_NAME kinds { $$ = zc_rl_make_value(s, @T_NAME, $T_NAME, $kinds); }
    | T_UNDERSCORE { $$ = zc_rl_make_pat(s, @$, ZC_RP_ABSENT); }
    | sign_number tolerance { $$ = zc_rl_make_number(s, @sign_number, $sign_number, $tolerance); }
    | '[' exprs_or_none ']' { $$ = zc_rl_make_vector(s, @$, $2); }
    | '{' expr '}' { $$ = zc_rl_make_computed(s, @$, $expr); }
    | '(' alternatives ')' { $$ = zc_rl_make_alt(s, @$, $alternatives); }
    | call;
call: T_NAME '(' operands ')' braces times
        { $$ = zc_rl_make_call(s, @T_NAME, $T_NAME, $operands, $braces, $times); };
operands: argument { $$ = zc_rl_append(s, NULL, $argument); }
    | operands[list] ',' argument { $$ = zc_rl_append(s, $list, $argument); };
argument: operand | operand T_DOTS { $$ = zc_rl_add_dots($operand); }
    | T_NAME kinds '?' { $$ = zc_rl_make_value(s, @T_NAME, $T_NAME, $kinds); if ($$) $$->optional = true; }
    | T_DOTS { $$ = zc_rl_make_pat(s, @$, ZC_RP_REST); };
times: %empty { $$ = (zc_rl_times){1, 1}; } | '?' { $$ = (zc_rl_times){0, 1}; }
    | '*' T_NUMBER[least] T_RANGE T_NUMBER[most] { $$ = zc_rl_make_times(s, @$, $least, $most); };
alternatives: operand { $$ = zc_rl_append(s, NULL, $operand); }
    | alternatives[list] '|' operand { $$ = zc_rl_append(s, $list, $operand); };
tolerance: %empty { $$ = (zc_rl_number){.is_int = true}; } | '~' T_NUMBER { $$ = $T_NUMBER; };
sign_number: T_NUMBER | '-' T_NUMBER { $$ = zc_rl_negate($T_NUMBER); };

kinds: %empty { $$ = (zc_rl_kinds){0}; } | ':' kind_list { $$ = $kind_list; };
kind_list: kind | kind_list[a] '&' kind[b] { $$ = zc_rl_join_kinds(s, @b, $a, $b); };
kind: T_NAME { $$ = zc_rl_kind_of(s, @T_NAME, $T_NAME); };

braces: %empty { $$ = NULL; } | '{' attr_list '}' { $$ = $attr_list; };
attr_list: attr { $$ = zc_rl_add_attr(s, NULL, $attr); }
    | T_DOTS { $$ = zc_rl_add_attr(s, NULL, NULL); }
    | attr_list[list] ',' attr { $$ = zc_rl_add_attr(s, $list, $attr); }
    | attr_list[list] ',' T_DOTS { $$ = zc_rl_add_attr(s, $list, NULL); };
attr: word relation expr { $$ = zc_rl_make_attr(s, $word, $relation, $expr); }
    | word T_IN '{' exprs '}' { $$ = zc_rl_make_attr(s, $word, ZC_RE_IN, zc_rl_make_list(s, @exprs, $exprs)); };
relation: '=' { $$ = -1; } | T_EQ { $$ = ZC_RE_EQ; } | T_NE { $$ = ZC_RE_NE; } | '<' { $$ = ZC_RE_LT; }
    | '>' { $$ = ZC_RE_GT; } | T_LE { $$ = ZC_RE_LE; } | T_GE { $$ = ZC_RE_GE; } | T_NEAR { $$ = ZC_RE_NEAR; };

exprs: expr { $$ = zc_rl_append(s, NULL, $expr); }
    | exprs[list] ',' expr { $$ = zc_rl_append(s, $list, $expr); };
exprs_or_none: %empty { $$ = NULL; } | exprs;

expr: T_NUMBER { $$ = zc_rl_make_literal(s, @$, $1); }
    | T_STRING { $$ = zc_rl_make_word(s, @$, ZC_RE_STR, $1, NULL); }
    | T_NAME { $$ = zc_rl_make_word(s, @$, ZC_RE_NAME, $1, NULL); }
    | T_NAME '(' exprs_or_none ')' { $$ = zc_rl_make_word(s, @$, ZC_RE_CALL, $1, $3); }
    | '[' exprs_or_none ']' { $$ = zc_rl_make_list(s, @$, $2); }
    | '(' expr[a] ')' { $$ = $a; }
    | '!' expr[a] { $$ = zc_rl_make_op(s, @$, ZC_RE_NOT, $a, NULL); }
    | '-' expr[a] %prec UNARY { $$ = zc_rl_make_op(s, @$, ZC_RE_NEG, $a, NULL); }
    | expr[a] T_OR expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_OR, $a, $b); }
    | expr[a] T_AND expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_AND, $a, $b); }
    | expr[a] T_EQ expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_EQ, $a, $b); }
    | expr[a] T_NE expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_NE, $a, $b); }
    | expr[a] '<' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_LT, $a, $b); }
    | expr[a] '>' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_GT, $a, $b); }
    | expr[a] T_LE expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_LE, $a, $b); }
    | expr[a] T_GE expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_GE, $a, $b); }
    | expr[a] T_NEAR expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_NEAR, $a, $b); }
    | expr[a] T_IN '{' exprs_or_none[set] '}' { $$ = zc_rl_make_op(s, @$, ZC_RE_IN, $a, zc_rl_make_list(s, @set, $set)); }
    | expr[a] '+' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_ADD, $a, $b); }
    | expr[a] '-' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_SUB, $a, $b); }
    | expr[a] '*' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_MUL, $a, $b); }
    | expr[a] '/' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_DIV, $a, $b); }
    | expr[a] '%' expr[b] { $$ = zc_rl_make_op(s, @$, ZC_RE_MOD, $a, $b); };
