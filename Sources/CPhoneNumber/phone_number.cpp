#include "phone_number.h"

#include <cstring>
#include <string>

#include <phonenumbers/logger.h>
#include <phonenumbers/phonenumber.pb.h>
#include <phonenumbers/phonenumberutil.h>

using i18n::phonenumbers::NullLogger;
using i18n::phonenumbers::PhoneNumber;
using i18n::phonenumbers::PhoneNumberUtil;

namespace {

// The library logs what it cannot parse. A number is nothing for a log.
PhoneNumberUtil &util() {
    static PhoneNumberUtil *instance = [] {
        PhoneNumberUtil *made = PhoneNumberUtil::GetInstance();
        made->SetLogger(new NullLogger());
        return made;
    }();
    return *instance;
}

// Its table of lengths may be older than the numbers: too long is no reason up to E.164's fifteen digits, nor is "not
// valid".
bool has_possible_length(const PhoneNumber &number) {
    switch (util().IsPossibleNumberWithReason(number)) {
        case PhoneNumberUtil::IS_POSSIBLE:
        case PhoneNumberUtil::TOO_LONG:
            return true;
        default:
            return false;
    }
}

bool may_be_sent_to(const PhoneNumber &number) {
    switch (util().GetNumberType(number)) {
        case PhoneNumberUtil::PREMIUM_RATE:
        case PhoneNumberUtil::SHARED_COST:
        case PhoneNumberUtil::TOLL_FREE:
        case PhoneNumberUtil::PAGER:
        case PhoneNumberUtil::VOICEMAIL:
        // They forward at a price that their holder chooses, and are sold to those who make others call.
        case PhoneNumberUtil::PERSONAL_NUMBER:
            return false;
        default:
            return true;
    }
}

bool copy(const std::string &text, char *to, size_t size) {
    if (text.empty() || text.size() >= size) return false;
    std::memcpy(to, text.c_str(), text.size() + 1);
    return true;
}

}  // namespace

int phone_number_read(const char *text, size_t length, const char *default_region, struct phone_number *result) {
    try {
        PhoneNumber typed, number;
        const std::string region = default_region == nullptr ? "ZZ" : default_region;
        if (util().Parse(std::string(text, length), region, &typed) != PhoneNumberUtil::NO_PARSING_ERROR) return 0;
        std::string e164, again, country;
        util().Format(typed, PhoneNumberUtil::E164, &e164);
        // E.164: 7 to 15 digits after the plus sign.
        if (e164.size() < 8 || e164.size() > 16) return 0;
        // "(00) 056 78" gives a text which is read as another number: the key of an account must be one number for all
        // who send it.
        if (util().Parse(e164, "ZZ", &number) != PhoneNumberUtil::NO_PARSING_ERROR) return 0;
        util().Format(number, PhoneNumberUtil::E164, &again);
        if (again != e164) return 0;
        if (typed.has_extension() || !has_possible_length(number) || !may_be_sent_to(number)) return 0;
        util().GetRegionCodeForNumber(number, &country);
        if (country.empty() || country == "ZZ") {
            util().GetRegionCodeForCountryCode(number.country_code(), &country);
        }
        return copy(e164, result->e164, sizeof result->e164) && copy(country, result->region, sizeof result->region);
    } catch (...) {
        return 0;
    }
}
