/* fuzz_zip.c: lists a zip, looks members up and reads every byte of them. */
#include "io/zip.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return setenv("TDBG_MAX_UNPACK", "16777216", 1);
}

static void read_member(const struct td_zip *zip, const struct td_zip_member *member,
                        struct td_bundle *scratch)
{
    const struct td_zip_member *found = td_zip_find(zip, member->name);
    const uint8_t *bytes;
    struct tdbg_error error;
    if (!found || (found != member && !member->defect))
        abort();
    if (td_zip_read(zip, member, scratch, &bytes, &error) != TDBG_OK)
        return;
    volatile uint8_t sum = 0;
    for (uint64_t i = 0; i < member->size; i++)
        sum = (uint8_t)(sum + bytes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct td_bundle *scratch;
    struct td_zip zip;
    struct tdbg_error error;
    if (td_bundle_open_memory(&scratch, "fuzz.zip", data, size, &error) != TDBG_OK)
        return 0;
    td_zip_probe(data, size);
    if (td_zip_open(&zip, data, size, &error) == TDBG_OK) {
        for (size_t i = 0; i < zip.count; i++)
            read_member(&zip, &zip.members[i], scratch);
        td_zip_release(&zip);
    }
    td_bundle_close(&scratch);
    return 0;
}
