/* Fibers: a context switch of a few instructions on x86-64, ucontext elsewhere. */
#include "fibers.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

#ifdef HC_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES ((size_t)1 << 20) /* redzones make frames larger; reports need much */
#else
#define STACK_BYTES ((size_t)64 << 10)
#endif

#if defined __x86_64__
#define HC_SWITCH_ASM
#else
#include <ucontext.h>
#endif

struct hc_fiber {
#ifdef HC_SWITCH_ASM
    void *sp;
#else
    ucontext_t context;
#endif
    unsigned char *stack; /* lowest byte; a guard page lies below */
    size_t size;
    void *fake; /* ASan's record of the stack while another runs */
    bool taken;
    hc_fiber *next_free;
};

static hc_fiber **pool;
static unsigned pool_count, pool_capacity;
static hc_fiber *free_list;
static hc_fiber host;

#ifdef HC_SWITCH_ASM
void hc_switch_stack(void **save, void *to);
__asm__(".text\n"
        ".globl hc_switch_stack\n"
        ".hidden hc_switch_stack\n"
        ".type hc_switch_stack, @function\n"
        "hc_switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size hc_switch_stack, .-hc_switch_stack\n");
#endif

/* What runs first on a stack, before the entry function. */
static void (*current_entry)(void);

static void arrived(hc_fiber *self)
{
#ifdef HC_SANITIZED
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(self->fake, &bottom, &size);
    if (!host.stack) { /* the first switch is from the host's stack */
        host.stack = (unsigned char *)(uintptr_t)bottom;
        host.size = size;
    }
#else
    (void)self;
#endif
}

static void first(void)
{
#ifdef HC_SANITIZED
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &size);
    if (!host.stack) {
        host.stack = (unsigned char *)(uintptr_t)bottom;
        host.size = size;
    }
#endif
    current_entry();
    abort();
}

static void prepare(hc_fiber *f, void (*entry)(void))
{
#ifdef HC_SANITIZED
    /* The frames it was in when it was given back never ended. */
#ifdef HC_SWITCH_ASM
    unsigned char *low = f->sp ? f->sp : f->stack;
#else
    unsigned char *low = f->stack;
#endif
    __asan_unpoison_memory_region(low, (size_t)(f->stack + f->size - low));
#endif
    current_entry = entry;
    f->fake = NULL;
#ifdef HC_SWITCH_ASM
    /* As a call of first would find it: its address above the saved registers, and above that the
     * place of a return address, 8 below a multiple of 16. */
    void **top = (void **)(f->stack + f->size - 8);
    *top-- = NULL;
    void (*start)(void) = first;
    __builtin_memcpy(top, &start, sizeof start);
    f->sp = top - 6;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = f->size;
    f->context.uc_link = NULL;
    makecontext(&f->context, first, 0);
#endif
}

static bool pool_room(void)
{
    if (pool_count < pool_capacity) return true;
    unsigned capacity = pool_capacity ? pool_capacity * 2 : 1024;
    hc_fiber **grown = realloc(pool, capacity * sizeof(hc_fiber *));
    if (!grown) return false;
    pool = grown;
    pool_capacity = capacity;
    return true;
}

static hc_fiber *fiber_new(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    hc_fiber *f = pool_room() ? calloc(1, sizeof *f) : NULL;
    if (!f) return NULL;
    void *memory = mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
        free(f);
        return NULL;
    }
    f->stack = (unsigned char *)memory + page;
    f->size = STACK_BYTES;
    pool[pool_count++] = f;
    return f;
}

hc_fiber *hc_fiber_take(void (*entry)(void))
{
    hc_fiber *f = free_list;
    if (f)
        free_list = f->next_free;
    else
        f = fiber_new();
    if (!f) return NULL;
    f->taken = true;
    prepare(f, entry);
    return f;
}

void hc_fiber_give(hc_fiber *f)
{
    f->taken = false;
    f->next_free = free_list;
    free_list = f;
}

hc_fiber *hc_fiber_host(void)
{
    return &host;
}

void hc_fiber_switch(hc_fiber *from, hc_fiber *to)
{
#ifdef HC_SANITIZED
    if (from == &host) host.stack = NULL;    /* another thread's than before, maybe */
    if (to == &host && !host.stack) abort(); /* fibers are entered from the host */
    /* A given-back fiber does not come back here: its fake stack can go. */
    __sanitizer_start_switch_fiber(from == &host || from->taken ? &from->fake : NULL, to->stack,
                                   to->size);
#endif
#ifdef HC_SWITCH_ASM
    hc_switch_stack(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived(from);
}

void hc_fibers_abandon(void)
{
    for (unsigned i = 0; i < pool_count; i++) {
        hc_fiber *f = pool[i];
#ifdef HC_SANITIZED
        __asan_unpoison_memory_region(f->stack, f->size);
#endif
        if (f->taken) hc_fiber_give(f);
    }
}
