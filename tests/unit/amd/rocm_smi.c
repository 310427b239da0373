/* rocm_smi.c: one GPU that does not exist, behind the calls of AMD's library. */
#include <stdint.h>

int rsmi_init(uint64_t flags);
int rsmi_shut_down(void);
int rsmi_num_monitor_devices(uint32_t *count);
int rsmi_dev_busy_percent_get(uint32_t index, uint32_t *percent);
int rsmi_dev_memory_usage_get(uint32_t index, int kind, uint64_t *used);

#define EXPORT __attribute__((visibility("default")))

EXPORT int rsmi_init(uint64_t flags)
{
    return flags == 0 ? 0 : 1;
}

EXPORT int rsmi_shut_down(void)
{
    return 0;
}

EXPORT int rsmi_num_monitor_devices(uint32_t *count)
{
    *count = 1;
    return 0;
}

EXPORT int rsmi_dev_busy_percent_get(uint32_t index, uint32_t *percent)
{
    *percent = 55;
    return index == 0 ? 0 : 1;
}

EXPORT int rsmi_dev_memory_usage_get(uint32_t index, int kind, uint64_t *used)
{
    *used = UINT64_C(3) << 30;
    return index == 0 && kind == 0 ? 0 : 1;
}
