/* library.c: see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static tdbg_status load(struct td_library *library, struct tdbg_error *error)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return td_fail(error, TDBG_UNSUPPORTED, "needs a library that is not here: %s", dlerror());
    void **calls = library->calls;
    for (size_t i = 0; library->names[i]; i++)
        if (!(calls[i] = dlsym(handle, library->names[i])))
            return td_fail(error, TDBG_UNSUPPORTED, "%s has no %s", library->file, library->names[i]);
    return TDBG_OK;
}

tdbg_status td_library_load(struct td_library *library, struct tdbg_error *error)
{
    if (atomic_load_explicit(&library->loaded, memory_order_acquire))
        return TDBG_OK;
    pthread_mutex_lock(&one_at_a_time);
    tdbg_status status = atomic_load(&library->loaded) ? TDBG_OK : load(library, error);
    if (status == TDBG_OK)
        atomic_store_explicit(&library->loaded, true, memory_order_release);
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}
