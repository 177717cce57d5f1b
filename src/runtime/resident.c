#include "runtime/resident.h"

#include "runtime/gpu.h"

/* Inputs that the last run brought to the device are in rooms of their own there. */
static void keep(zc_session *s)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++)
        s->inputs[i].resident = s->gpu->on_device[top->params[i]] && !s->inputs[i].on_device;
    for (uint32_t i = 0; i < top->nouts; i++) s->outputs[i].stays = true;
}

zc_status zc_session_reside(zc_session *session, zc_diag *diag)
{
    if (!session->gpu)
        return zc_fail(diag, ZC_ERR_ARG, "transfers",
                       "there are none to leave out on the CPU (need a GPU)");
    ZC_TRY(zc_session_run(session, diag));
    ZC_TRY(zc_session_enter(session, diag));
    keep(session);
    return zc_session_leave(session, ZC_OK, diag);
}
