/* Where the fake devices are on the PCI bus: the driver and the management library name them so. */
#ifndef ZC_HOSTCUDA_BUS_H
#define ZC_HOSTCUDA_BUS_H

#define HC_BUS_FORMAT "0000:%02x:00.0"
#define HC_FIRST_BUS  0x17u

#endif
