#include "cpu/catch.h"

#include <new>

zc_caught zc_catch(void (*fn)(void *arg), void *arg)
{
    try {
        fn(arg);
        return ZC_CAUGHT_NOTHING;
    } catch (const std::bad_alloc &) {
        return ZC_CAUGHT_NOMEM;
    } catch (...) {
        return ZC_CAUGHT_OTHER;
    }
}
