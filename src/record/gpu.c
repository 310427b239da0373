/* gpu.c: see gpu.h.
 *
 * The two libraries differ in names and in types only, so each is a row of functions over an opened library:
 * start, count, sample, stop. Their calls are declared here as their documentation does; every call answers 0
 * when all is well.
 */
#include "record/gpu.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS = 64, CALLS = 6 };

typedef void (*function)(void);

struct driver {
    const char *libraries[4]; /* tried in order */
    const char *names[CALLS];
    bool (*start)(const function *calls, unsigned *count);
    bool (*sample)(const function *calls, unsigned index, struct td_gpu_sample *out);
    void (*stop)(const function *calls);
};

struct td_gpu {
    void *library;
    const struct driver *driver;
    function calls[CALLS];
    unsigned count;
};

/* --- NVML ----------------------------------------------------------------------------------------------- */

enum { NV_INIT, NV_SHUTDOWN, NV_COUNT, NV_HANDLE, NV_UTILISATION, NV_MEMORY };

struct nv_utilisation {
    unsigned gpu, memory;
};

struct nv_memory {
    unsigned long long total, free, used;
};

static bool nv_start(const function *calls, unsigned *count)
{
    if (((int (*)(void))calls[NV_INIT])() != 0)
        return false;
    if (((int (*)(unsigned *))calls[NV_COUNT])(count) == 0)
        return true;
    ((int (*)(void))calls[NV_SHUTDOWN])();
    return false;
}

static bool nv_sample(const function *calls, unsigned index, struct td_gpu_sample *out)
{
    void *device = NULL;
    struct nv_utilisation busy;
    struct nv_memory memory;
    if (((int (*)(unsigned, void **))calls[NV_HANDLE])(index, &device) != 0 ||
        ((int (*)(void *, struct nv_utilisation *))calls[NV_UTILISATION])(device, &busy) != 0 ||
        ((int (*)(void *, struct nv_memory *))calls[NV_MEMORY])(device, &memory) != 0)
        return false;
    *out = (struct td_gpu_sample){.utilisation = busy.gpu, .memory = (double)memory.used};
    return true;
}

static void nv_stop(const function *calls)
{
    ((int (*)(void))calls[NV_SHUTDOWN])();
}

/* --- ROCm SMI ------------------------------------------------------------------------------------------- */

enum { AMD_INIT, AMD_SHUTDOWN, AMD_COUNT, AMD_BUSY, AMD_MEMORY };

static bool amd_start(const function *calls, unsigned *count)
{
    uint32_t found = 0;
    if (((int (*)(uint64_t))calls[AMD_INIT])(0) != 0)
        return false;
    if (((int (*)(uint32_t *))calls[AMD_COUNT])(&found) != 0) {
        ((int (*)(void))calls[AMD_SHUTDOWN])();
        return false;
    }
    *count = found;
    return true;
}

static bool amd_sample(const function *calls, unsigned index, struct td_gpu_sample *out)
{
    uint32_t busy;
    uint64_t used;
    if (((int (*)(uint32_t, uint32_t *))calls[AMD_BUSY])(index, &busy) != 0 ||
        ((int (*)(uint32_t, int, uint64_t *))calls[AMD_MEMORY])(index, 0, &used) != 0) /* 0: its own memory */
        return false;
    *out = (struct td_gpu_sample){.utilisation = busy, .memory = (double)used};
    return true;
}

static void amd_stop(const function *calls)
{
    ((int (*)(void))calls[AMD_SHUTDOWN])();
}

/* --- Whichever is there --------------------------------------------------------------------------------- */

static const struct driver drivers[] = {
    {.libraries = {"libnvidia-ml.so.1"},
     .names = {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
               "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"},
     .start = nv_start,
     .sample = nv_sample,
     .stop = nv_stop},
    {.libraries = {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so.1"},
     .names = {"rsmi_init", "rsmi_shut_down", "rsmi_num_monitor_devices", "rsmi_dev_busy_percent_get",
               "rsmi_dev_memory_usage_get"},
     .start = amd_start,
     .sample = amd_sample,
     .stop = amd_stop},
};

static void *open_any(const char *const *libraries)
{
    void *library = NULL;
    for (int i = 0; i < 4 && libraries[i] && !library; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool find_calls(struct td_gpu *gpu)
{
    for (int i = 0; i < CALLS && gpu->driver->names[i]; i++) {
        void *symbol = dlsym(gpu->library, gpu->driver->names[i]);
        memcpy(&gpu->calls[i], &symbol, sizeof symbol); /* C has no cast from an object to a function */
        if (!symbol)
            return false;
    }
    return true;
}

static bool start(struct td_gpu *gpu, const struct driver *driver)
{
    gpu->driver = driver;
    gpu->library = open_any(driver->libraries);
    if (!gpu->library)
        return false;
    if (find_calls(gpu) && driver->start(gpu->calls, &gpu->count)) {
        gpu->count = gpu->count > GPUS ? GPUS : gpu->count;
        if (gpu->count)
            return true;
        driver->stop(gpu->calls);
    }
    dlclose(gpu->library);
    return false;
}

struct td_gpu *td_gpu_open(void)
{
    struct td_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return NULL;
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (start(gpu, &drivers[i]))
            return gpu;
    free(gpu);
    return NULL;
}

int td_gpu_count(const struct td_gpu *gpu)
{
    return (int)gpu->count;
}

bool td_gpu_sample(struct td_gpu *gpu, int index, struct td_gpu_sample *out)
{
    return index >= 0 && (unsigned)index < gpu->count &&
           gpu->driver->sample(gpu->calls, (unsigned)index, out);
}

void td_gpu_close(struct td_gpu **gpu)
{
    if (!*gpu)
        return;
    (*gpu)->driver->stop((*gpu)->calls);
    dlclose((*gpu)->library);
    free(*gpu);
    *gpu = NULL;
}
