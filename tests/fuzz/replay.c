/* Without libFuzzer the fuzz targets are plain tests: every file given, or in a directory given, is
 * fed to the target once, and each is one TAP case. A crash is what fails. */
#include "base/tap.h"

#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
    FILE *f = fopen(path, "re");
    size_t cap = 1 << 24, n;
    uint8_t *data = f ? malloc(cap) : NULL;
    if (!tap_ok(data != NULL, "%s can be read", path)) {
        if (f)
            fclose(f);
        return;
    }
    n = fread(data, 1, cap, f);
    fclose(f);
    uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees one byte too many */
    if (exact) {
        memcpy(exact, data, n);
        tap_ok(LLVMFuzzerTestOneInput(exact, n) == 0, "%s (%zu bytes)", path, n);
    }
    free(exact);
    free(data);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat st;
        DIR *d = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? opendir(argv[i]) : NULL;
        if (!d) {
            replay(argv[i]);
            continue;
        }
        for (struct dirent *e; (e = readdir(d));) {
            char path[4096];
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            replay(path);
        }
        closedir(d);
    }
    tap_ok(tap_count > 0, "there were inputs to replay");
    return tap_done();
}
