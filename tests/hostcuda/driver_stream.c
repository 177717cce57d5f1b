/* Streams, events and capture. Streams execute at once; a capturing stream records. */
#include <stdlib.h>
#include <time.h>

#include "state.h"

/* One capture; forked streams share it. Nodes are in one line, in the order of the calls. */
typedef struct hc_capture {
    struct hc_stream *origin;
    hc_graph_t graph;
    unsigned mode;
    bool invalid;
    uint64_t id;
} hc_capture;

struct hc_stream {
    unsigned flags;
    hc_capture *capture;
    unsigned end;    /* nodes of the capture when this stream last added one */
    unsigned joined; /* nodes that the origin has waited for */
};

struct hc_event {
    unsigned flags;
    bool recorded;
    struct timespec time;
    hc_capture *capture; /* where it was recorded last, and after which node of which stream */
    struct hc_stream *stream;
    unsigned at;
};

static uint64_t capture_ids;
static _Thread_local unsigned capturing_here; /* captures that this thread has begun */

/* The legacy stream, also by its handles 1 (legacy) and 2 (this thread's). */
static bool is_legacy(hc_stream_t s)
{
    return (uintptr_t)s <= 2;
}

static bool is_stream(hc_stream_t s)
{
    return is_legacy(s) || hc_is(HC_STREAM, s);
}

static hc_capture *capture_of(hc_stream_t s)
{
    return is_legacy(s) ? NULL : s->capture;
}

/* ---- What a capture forbids ---- */

static hc_result violation; /* found by the visitors below */

static void find_unsafe(void *p, size_t size)
{
    hc_capture *c = ((struct hc_stream *)p)->capture;
    (void)size;
    if (!c || c->invalid || c->mode == HC_CU_STREAM_CAPTURE_MODE_RELAXED) return;
    if (c->mode == HC_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !capturing_here) return;
    c->invalid = true;
    violation = HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

hc_result hc_capture_check_unsafe(void)
{
    violation = HC_CUDA_SUCCESS;
    hc_for_each(HC_STREAM, find_unsafe);
    return violation;
}

/* Work in the legacy stream would wait for every blocking stream. */
static void find_implicit(void *p, size_t size)
{
    struct hc_stream *s = p;
    (void)size;
    if (!s->capture || s->capture->invalid || s->flags & HC_CU_STREAM_NON_BLOCKING) return;
    s->capture->invalid = true;
    violation = HC_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

hc_result hc_capture_check_legacy(void)
{
    violation = HC_CUDA_SUCCESS;
    hc_for_each(HC_STREAM, find_implicit);
    return violation == HC_CUDA_SUCCESS ? hc_capture_check_unsafe() : violation;
}

static hc_result record(struct hc_stream *s, const hc_work *w)
{
    hc_capture *c = s->capture;
    if (c->invalid) return HC_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!hc_graph_add(c->graph, w)) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    s->end = c->graph->count;
    return HC_CUDA_SUCCESS;
}

hc_result hc_submit(hc_stream_t stream, const hc_work *w)
{
    if (!is_stream(stream)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (w->type == HC_CU_GRAPH_NODE_TYPE_KERNEL) {
        hc_result r = hc_check_launch(&w->launch);
        if (r != HC_CUDA_SUCCESS) return r;
    }
    if (capture_of(stream)) return record(stream, w);
    if (is_legacy(stream)) {
        violation = HC_CUDA_SUCCESS;
        hc_for_each(HC_STREAM, find_implicit);
        if (violation != HC_CUDA_SUCCESS) return violation;
    }
    return hc_work_run(w);
}

/* ---- Streams ---- */

static hc_result stream_create(hc_stream_t *stream, unsigned flags)
{
    if (!stream || flags > HC_CU_STREAM_NON_BLOCKING) return HC_CUDA_ERROR_INVALID_VALUE;
    struct hc_stream *s = hc_new(HC_STREAM, sizeof *s);
    if (!s) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    s->flags = flags;
    *stream = s;
    return HC_CUDA_SUCCESS;
}

hc_result cuStreamCreate(hc_stream_t *stream, unsigned flags)
{
    HC_CALL(HC_NEEDS_CONTEXT, stream_create(stream, flags));
}

static hc_capture *ending; /* the capture that leave_capture ends */

static void leave_capture(void *p, size_t size)
{
    struct hc_stream *s = p;
    (void)size;
    if (s->capture == ending) s->capture = NULL;
}

static void forget_events(void *p, size_t size)
{
    struct hc_event *e = p;
    (void)size;
    if (e->capture == ending) e->capture = NULL;
}

static void capture_end(hc_capture *c)
{
    ending = c;
    hc_for_each(HC_STREAM, leave_capture);
    hc_for_each(HC_EVENT, forget_events);
    free(c);
}

static hc_result stream_destroy(hc_stream_t s)
{
    if (is_legacy(s) || !hc_is(HC_STREAM, s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (s->capture && s->capture->origin == s) {
        hc_graph_delete(s->capture->graph);
        capture_end(s->capture);
    } else if (s->capture) {
        s->capture->invalid = true;
    }
    hc_delete(s);
    return HC_CUDA_SUCCESS;
}

hc_result cuStreamDestroy_v2(hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, stream_destroy(stream));
}

static hc_result wait_for(hc_stream_t s)
{
    if (!is_stream(s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (is_legacy(s)) return hc_capture_check_legacy();
    if (!s->capture) return HC_CUDA_SUCCESS;
    s->capture->invalid = true;
    return HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

hc_result cuStreamSynchronize(hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, wait_for(stream));
}

hc_result cuStreamQuery(hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, wait_for(stream));
}

static hc_result begin_capture(hc_stream_t s, unsigned mode)
{
    if (mode > HC_CU_STREAM_CAPTURE_MODE_RELAXED) return HC_CUDA_ERROR_INVALID_VALUE;
    if (is_legacy(s)) return HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!hc_is(HC_STREAM, s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) return HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    hc_capture *c = calloc(1, sizeof *c);
    if (!c) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    c->graph = hc_graph_new();
    if (!c->graph) {
        free(c);
        return HC_CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->origin = s;
    c->mode = mode;
    c->id = ++capture_ids;
    s->capture = c;
    s->end = s->joined = 0;
    capturing_here++;
    return HC_CUDA_SUCCESS;
}

hc_result cuStreamBeginCapture_v2(hc_stream_t stream, unsigned mode)
{
    HC_CALL(HC_NEEDS_CONTEXT, begin_capture(stream, mode));
}

static void find_unjoined(void *p, size_t size)
{
    struct hc_stream *s = p;
    (void)size;
    if (s->capture == ending && s != ending->origin && s->joined < s->end)
        violation = HC_CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

static hc_result end_capture(hc_stream_t s, hc_graph_t *graph)
{
    if (!graph) return HC_CUDA_ERROR_INVALID_VALUE;
    if (is_legacy(s) || !hc_is(HC_STREAM, s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    *graph = NULL;
    hc_capture *c = s->capture;
    if (!c) return HC_CUDA_ERROR_INVALID_VALUE;
    if (c->origin != s) return HC_CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    violation = c->invalid ? HC_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : HC_CUDA_SUCCESS;
    ending = c;
    if (violation == HC_CUDA_SUCCESS) hc_for_each(HC_STREAM, find_unjoined);
    if (violation == HC_CUDA_SUCCESS)
        *graph = c->graph;
    else
        hc_graph_delete(c->graph);
    capture_end(c);
    if (capturing_here) capturing_here--;
    return violation;
}

hc_result cuStreamEndCapture(hc_stream_t stream, hc_graph_t *graph)
{
    HC_CALL(HC_NEEDS_CONTEXT, end_capture(stream, graph));
}

static unsigned status_of(const hc_capture *c)
{
    if (!c) return HC_CU_STREAM_CAPTURE_STATUS_NONE;
    return c->invalid ? HC_CU_STREAM_CAPTURE_STATUS_INVALIDATED
                      : HC_CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static hc_result capture_info(hc_stream_t s, unsigned *status, uint64_t *id, hc_graph_t *graph,
                              const hc_node_t **deps, size_t *dep_count)
{
    if (!status) return HC_CUDA_ERROR_INVALID_VALUE;
    if (!is_stream(s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    hc_capture *c = capture_of(s);
    *status = status_of(c);
    if (*status != HC_CU_STREAM_CAPTURE_STATUS_ACTIVE) return HC_CUDA_SUCCESS;
    unsigned n = c->graph->count;
    if (id) *id = c->id;
    if (graph) *graph = c->graph;
    if (deps) *deps = n ? c->graph->nodes + n - 1 : NULL;
    if (dep_count) *dep_count = n ? 1 : 0;
    return HC_CUDA_SUCCESS;
}

hc_result cuStreamIsCapturing(hc_stream_t stream, unsigned *status)
{
    HC_CALL(HC_NEEDS_CONTEXT, capture_info(stream, status, NULL, NULL, NULL, NULL));
}

hc_result cuStreamGetCaptureInfo_v2(hc_stream_t stream, unsigned *status, uint64_t *id,
                                    hc_graph_t *graph, const hc_node_t **deps, size_t *dep_count)
{
    HC_CALL(HC_NEEDS_CONTEXT, capture_info(stream, status, id, graph, deps, dep_count));
}

hc_result cuStreamGetCaptureInfo_v3(hc_stream_t stream, unsigned *status, uint64_t *id,
                                    hc_graph_t *graph, const hc_node_t **deps,
                                    const hc_edge_data **edges, size_t *dep_count)
{
    if (edges) *edges = NULL;
    HC_CALL(HC_NEEDS_CONTEXT, capture_info(stream, status, id, graph, deps, dep_count));
}

/* ---- Events ---- */

static hc_result event_create(hc_event_t *event, unsigned flags)
{
    if (!event) return HC_CUDA_ERROR_INVALID_VALUE;
    struct hc_event *e = hc_new(HC_EVENT, sizeof *e);
    if (!e) return HC_CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    *event = e;
    return HC_CUDA_SUCCESS;
}

hc_result cuEventCreate(hc_event_t *event, unsigned flags)
{
    HC_CALL(HC_NEEDS_CONTEXT, event_create(event, flags));
}

static hc_result event_record(hc_event_t e, hc_stream_t s)
{
    if (!hc_is(HC_EVENT, e) || !is_stream(s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    e->capture = capture_of(s);
    if (e->capture) {
        e->stream = s;
        e->at = s->end;
        return HC_CUDA_SUCCESS;
    }
    e->recorded = true;
    clock_gettime(CLOCK_MONOTONIC, &e->time);
    return HC_CUDA_SUCCESS;
}

hc_result cuEventRecord(hc_event_t event, hc_stream_t stream)
{
    HC_CALL(HC_NEEDS_CONTEXT, event_record(event, stream));
}

/* A stream that waits for an event of a capture joins it; the origin's wait joins the fork. */
static hc_result wait_event(hc_stream_t s, hc_event_t e)
{
    if (!hc_is(HC_EVENT, e) || !is_stream(s)) return HC_CUDA_ERROR_INVALID_HANDLE;
    hc_capture *mine = capture_of(s);
    if (!e->capture) {
        if (!mine || !e->recorded) return HC_CUDA_SUCCESS;
        mine->invalid = true;
        return HC_CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (is_legacy(s)) return HC_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (mine && mine != e->capture) {
        mine->invalid = e->capture->invalid = true;
        return HC_CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!mine) {
        s->capture = e->capture;
        s->end = s->joined = 0;
    } else if (hc_is(HC_STREAM, e->stream) && e->at > e->stream->joined) {
        e->stream->joined = e->at;
    }
    return HC_CUDA_SUCCESS;
}

hc_result cuStreamWaitEvent(hc_stream_t stream, hc_event_t event, unsigned flags)
{
    (void)flags;
    HC_CALL(HC_NEEDS_CONTEXT, wait_event(stream, event));
}

static hc_result event_synchronize(hc_event_t e)
{
    if (!hc_is(HC_EVENT, e)) return HC_CUDA_ERROR_INVALID_HANDLE;
    if (!e->capture) return HC_CUDA_SUCCESS;
    e->capture->invalid = true;
    return HC_CUDA_ERROR_CAPTURED_EVENT;
}

hc_result cuEventSynchronize(hc_event_t event)
{
    HC_CALL(HC_NEEDS_CONTEXT, event_synchronize(event));
}

static hc_result elapsed(float *ms, hc_event_t a, hc_event_t b)
{
    if (!ms) return HC_CUDA_ERROR_INVALID_VALUE;
    if (!hc_is(HC_EVENT, a) || !hc_is(HC_EVENT, b) || !a->recorded || !b->recorded ||
        (a->flags | b->flags) & HC_CU_EVENT_DISABLE_TIMING)
        return HC_CUDA_ERROR_INVALID_HANDLE;
    double s = (double)(b->time.tv_sec - a->time.tv_sec);
    *ms = (float)(s * 1e3 + (double)(b->time.tv_nsec - a->time.tv_nsec) * 1e-6);
    return HC_CUDA_SUCCESS;
}

hc_result cuEventElapsedTime(float *ms, hc_event_t start, hc_event_t end)
{
    HC_CALL(HC_NEEDS_CONTEXT, elapsed(ms, start, end));
}

hc_result cuEventElapsedTime_v2(float *ms, hc_event_t start, hc_event_t end)
{
    HC_CALL(HC_NEEDS_CONTEXT, elapsed(ms, start, end));
}

static hc_result event_destroy(hc_event_t e)
{
    if (!hc_is(HC_EVENT, e)) return HC_CUDA_ERROR_INVALID_HANDLE;
    hc_delete(e);
    return HC_CUDA_SUCCESS;
}

hc_result cuEventDestroy_v2(hc_event_t event)
{
    HC_CALL(HC_NEEDS_CONTEXT, event_destroy(event));
}

static void clear_stream(void *p, size_t size)
{
    struct hc_stream *s = p;
    (void)size;
    if (s->capture && s->capture->origin == s) capture_end(s->capture);
    hc_delete(s);
}

static void clear_event(void *p, size_t size)
{
    (void)size;
    hc_delete(p);
}

void hc_streams_clear(void)
{
    hc_for_each(HC_STREAM, clear_stream);
    hc_for_each(HC_EVENT, clear_event);
    capturing_here = 0;
}
