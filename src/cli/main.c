/* zc: one program, one command a file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/signals.h"
#include "zc/version.h"

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_overview(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) {
        printf("zc %s\n", ZC_VERSION);
        return EXIT_OK;
    }
    const cli_command *c = cli_command_find(name);
    if (c) return c->run(argc - 1, argv + 1);
    fprintf(stderr, "zc: no %s '", *name == '-' ? "option" : "command");
    cli_put(stderr, name);
    fputs("'\nTry 'zc help'.\n", stderr);
    return EXIT_USAGE;
}

/* A standard stream that is closed gets a descriptor on which its use fails: otherwise the next
 * file that is opened would take its number, and receive what is printed. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

/* Where a write fails is forgotten until the end: with room for most of what commands print, the
 * last one is the one that fails, and errno says why. */
static void make_room(void)
{
    static char room[1 << 16];
    (void)setvbuf(stdout, room, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof room);
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    make_room();
    cli_catch_signals();
    (void)zc_use_c_locale();
    int code = dispatch(argc, argv);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "zc: error: standard output: %s\n",
                errno ? strerror(errno) : "cannot be written");
        return code ? code : EXIT_REFUSED;
    }
    return code;
}
