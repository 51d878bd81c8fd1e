#pragma once
#include <stdlib.h>
#include <idn2.h>
