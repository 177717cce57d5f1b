/* Energy counters of packages in a folder that stands for /sys/class/powercap, and measurements by
 * them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/meter.h"

static char folder[] = "/tmp/zc-rapl-XXXXXX";

static void put(const char *zone, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, zone);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", folder, zone, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fprintf(out, "%s\n", text) > 0);
    assert_int_equal(fclose(out), 0);
}

static void put_zone(const char *zone, const char *name, const char *energy, const char *range)
{
    put(zone, "name", name);
    put(zone, "energy_uj", energy);
    put(zone, "max_energy_range_uj", range);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    int code = system(command);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    return code;
}

static void test_nothing_there(void **state)
{
    cli_rapl r;
    (void)state;
    cli_rapl_open(folder, &r);
    assert_true(isnan(cli_rapl_read(&r)));
    cli_rapl_open("/nowhere", &r);
    assert_true(isnan(cli_rapl_read(&r)));
}

/* Parts of a package, the same package by another road, and the whole machine do not count. */
static void test_packages_are_added(void **state)
{
    cli_rapl r;
    (void)state;
    put_zone("intel-rapl:0", "package-0", "1000000", "262143328850");
    put_zone("intel-rapl:0:0", "core", "5", "262143328850");
    put_zone("intel-rapl:1", "psys", "5", "262143328850");
    put_zone("intel-rapl:2", "package-1", "7000000", "262143328850");
    put_zone("intel-rapl-mmio:0", "package-0", "5", "262143328850");
    cli_rapl_open(folder, &r);
    assert_int_equal(r.n, 2);
    assert_true(cli_rapl_read(&r) == 0);
    put("intel-rapl:0", "energy_uj", "3500000");
    put("intel-rapl:1", "energy_uj", "900000000");
    put("intel-rapl:2", "energy_uj", "7250000");
    assert_true(fabs(cli_rapl_read(&r) - 2.75) < 1e-9);
    put("intel-rapl:0", "energy_uj", "4500000");
    assert_true(fabs(cli_rapl_read(&r) - 3.75) < 1e-9);
}

static void test_counter_begins_anew(void **state)
{
    cli_rapl r;
    (void)state;
    put_zone("intel-rapl:0", "package-0", "262143000000", "262143328850");
    cli_rapl_open(folder, &r);
    put("intel-rapl:0", "energy_uj", "671150");
    assert_true(fabs(cli_rapl_read(&r) - 1) < 1e-9);
    put("intel-rapl:0", "energy_uj", "1671150");
    assert_true(fabs(cli_rapl_read(&r) - 2) < 1e-9);
}

/* A sum without one of the packages would be wrong. */
static void test_one_that_says_nothing(void **state)
{
    cli_rapl r;
    (void)state;
    put_zone("intel-rapl:0", "package-0", "1", "262143328850");
    put_zone("intel-rapl:1", "package-1", "watts", "262143328850");
    cli_rapl_open(folder, &r);
    assert_true(isnan(cli_rapl_read(&r)));
    put("intel-rapl:1", "energy_uj", "1");
    cli_rapl_open(folder, &r);
    assert_true(cli_rapl_read(&r) == 0);
    put("intel-rapl:1", "energy_uj", "-1");
    assert_true(isnan(cli_rapl_read(&r)));
    put("intel-rapl:1", "energy_uj", "1");
    assert_true(isnan(cli_rapl_read(&r)));
}

/* A measurement of the CPU: joules between begin and end, over a second at least. */
static void test_measurement(void **state)
{
    const zc_device_info cpu = {.size = sizeof cpu, .kind = ZC_DEVICE_CPU};
    cli_meter m;
    cli_reading r;
    (void)state;
    put_zone("intel-rapl:0", "package-0", "262143328850", "262143328850");
    cli_meter_open(&cpu, folder, &m);
    put("intel-rapl:0", "energy_uj", "5000000");
    cli_meter_end(&m, &r);
    assert_true(isnan(r.cpu_joules) && isnan(r.cpu_watts)); /* too short */
    cli_meter_begin(&m);
    put("intel-rapl:0", "energy_uj", "262143328850");
    cli_meter_tick(&m);
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL);
    cli_meter_tick(&m); /* sees the counter before it begins anew */
    put("intel-rapl:0", "energy_uj", "40000000");
    cli_meter_end(&m, &r);
    cli_meter_close(&m);
    assert_true(fabs(r.cpu_joules - (262143.32885 - 5 + 40)) < 1e-3);
    assert_true(r.cpu_watts > 0 && r.cpu_watts < r.cpu_joules);
    assert_true(isnan(r.gpu_joules) && isnan(r.sm_low) && !cli_clocks_moved(&r));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_nothing_there),       IN_FOLDER(test_packages_are_added),
        IN_FOLDER(test_counter_begins_anew), IN_FOLDER(test_one_that_says_nothing),
        IN_FOLDER(test_measurement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
