#pragma once
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/sha.h>

/// Swift does not read the macro.
static const int libcrypto_key_pair = EVP_PKEY_KEYPAIR;
