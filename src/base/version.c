#include "zc/version.h"

const char *zc_version(void)
{
    return ZC_VERSION;
}

int zc_version_number(void)
{
    return ZC_VERSION_NUMBER;
}
