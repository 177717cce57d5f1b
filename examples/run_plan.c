/* The smallest useful client of the runtime library, explained line by line.
 *
 * usage: run_plan PLAN
 *
 * It loads a plan, gives every input random values (symbolic dimensions become 1), runs once and
 * prints what came out. A real client would fill the inputs with its own data. Link with libzc_rt.
 *
 * This file and its neighbours are C99, and C++11 as they stand. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zc/rt.h"

/* A diagnostic object collects why calls fail. It is the caller's: make one a thread, clear or
 * destroy it. */
static int fail(const zc_diag *diag)
{
    for (size_t i = 0; i < zc_diag_count(diag); i++)
        fprintf(stderr, "run_plan: %s\n", zc_diag_text(diag, i));
    return EXIT_FAILURE;
}

/* Bytes of an element of the types that this example fills. */
static size_t element_size(zc_elem elem)
{
    if (elem == zc_elem_parse("f32") || elem == zc_elem_parse("i32")) return 4;
    return elem == zc_elem_parse("i64") ? 8 : elem == zc_elem_parse("bool") ? 1 : 0;
}

static zc_status give_random(zc_session *session, size_t i, const zc_io_info *info, zc_diag *diag)
{
    /* A view describes a tensor: element type, dimensions, where the bytes are and how many. */
    zc_view view;
    size_t count = 1;
    memset(&view, 0, sizeof view);
    view.elem = info->elem;
    view.rank = info->rank;
    for (int d = 0; d < info->rank; d++) {
        view.dims[d] = info->dims[d] < 0 ? 1 : info->dims[d]; /* -1: symbolic, any size will do */
        count *= (size_t)view.dims[d];
    }
    view.bytes = count * element_size(info->elem);
    void *bytes = calloc(view.bytes + 1, 1);
    if (!bytes) return ZC_ERR_NOMEM;
    for (size_t e = 0; info->elem == zc_elem_parse("f32") && e < count; e++)
        ((float *)bytes)[e] = (float)rand() / (float)RAND_MAX;
    view.data = bytes;
    /* The session copies the bytes (borrow is false), so ours can go at once. */
    zc_status status = zc_session_set_input(session, i, &view, false, diag);
    free(bytes);
    return status;
}

static void print(const zc_io_info *info, const zc_view *view)
{
    printf("%s: %s[", info->name, zc_elem_name(view->elem));
    for (int d = 0; d < view->rank; d++) printf(d ? ",%lld" : "%lld", (long long)view->dims[d]);
    printf("]");
    for (size_t e = 0; view->elem == zc_elem_parse("f32") && e < view->bytes / 4 && e < 5; e++)
        printf(" %g", (double)((const float *)view->data)[e]);
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: run_plan PLAN\n");
        return EXIT_FAILURE;
    }
    zc_diag *diag = zc_diag_create();
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    zc_plan_info about;

    /* Loading verifies the whole file. The plan never changes afterwards and may be shared by
     * threads. */
    zc_status status = zc_plan_load_file(argv[1], &plan, diag);
    /* A session holds the working memory of one thread's runs. */
    if (status == ZC_OK)
        status = zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &session, diag);
    if (status == ZC_OK) status = zc_plan_info_get(plan, &about);
    for (size_t i = 0; status == ZC_OK && i < about.inputs; i++) {
        zc_io_info info;
        status = zc_plan_input(plan, i, &info, diag);
        if (status == ZC_OK) status = give_random(session, i, &info, diag);
    }
    /* The first run of new input shapes plans memory; later runs of the same shapes allocate
     * nothing. */
    if (status == ZC_OK) status = zc_session_run(session, diag);
    for (size_t i = 0; status == ZC_OK && i < about.outputs; i++) {
        zc_io_info info;
        zc_view view; /* its bytes belong to the session and live until the next run */
        status = zc_plan_output(plan, i, &info, diag);
        if (status == ZC_OK) status = zc_session_output(session, i, &view, diag);
        if (status == ZC_OK) print(&info, &view);
    }
    int code = status == ZC_OK ? EXIT_SUCCESS : fail(diag);
    /* In any order: a session keeps its plan alive. */
    (void)zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    return code;
}
