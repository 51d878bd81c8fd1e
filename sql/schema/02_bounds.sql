-- Bounds of single columns, for tables whose rows come and go with requests. PostgreSQL reads and plans each check of a
-- table anew in every INSERT and every UPDATE, whatever columns it writes; a domain is looked at where its column is
-- written, and once per connection it is planned. _to_: at most so many; else exactly so many.
SET LOCAL ROLE postern_owner;

CREATE DOMAIN postern.bytes_to_1024 AS bytea CHECK (octet_length(VALUE) <= 1024);
CREATE DOMAIN postern.bytes_to_4096 AS bytea CHECK (octet_length(VALUE) <= 4096);
CREATE DOMAIN postern.bytes_to_4300 AS bytea CHECK (octet_length(VALUE) <= 4300);
CREATE DOMAIN postern.bytes_to_65536 AS bytea CHECK (octet_length(VALUE) <= 65536);
CREATE DOMAIN postern.bytes_4 AS bytea CHECK (octet_length(VALUE) = 4);
CREATE DOMAIN postern.bytes_16 AS bytea CHECK (octet_length(VALUE) = 16);
CREATE DOMAIN postern.bytes_32 AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN postern.bytes_64 AS bytea CHECK (octet_length(VALUE) = 64);
CREATE DOMAIN postern.chars_to_64 AS text CHECK (char_length(VALUE) <= 64);
CREATE DOMAIN postern.chars_to_100 AS text CHECK (char_length(VALUE) <= 100);
CREATE DOMAIN postern.chars_to_256 AS text CHECK (char_length(VALUE) <= 256);
CREATE DOMAIN postern.text_to_3 AS text CHECK (octet_length(VALUE) <= 3);
CREATE DOMAIN postern.text_to_35 AS text CHECK (octet_length(VALUE) <= 35);
CREATE DOMAIN postern.text_to_100 AS text CHECK (octet_length(VALUE) <= 100);
CREATE DOMAIN postern.text_to_200 AS text CHECK (octet_length(VALUE) <= 200);
CREATE DOMAIN postern.text_to_253 AS text CHECK (octet_length(VALUE) <= 253);
CREATE DOMAIN postern.text_to_300 AS text CHECK (octet_length(VALUE) <= 300);
CREATE DOMAIN postern.text_to_400 AS text CHECK (octet_length(VALUE) <= 400);
CREATE DOMAIN postern.text_to_512 AS text CHECK (octet_length(VALUE) <= 512);
CREATE DOMAIN postern.text_to_2000 AS text CHECK (octet_length(VALUE) <= 2000);
CREATE DOMAIN postern.text_to_4096 AS text CHECK (octet_length(VALUE) <= 4096);
CREATE DOMAIN postern.text_43 AS text CHECK (octet_length(VALUE) = 43);
CREATE DOMAIN postern.channel_name AS text CHECK (postern.is_channel(VALUE));
COMMENT ON DOMAIN postern.channel_name IS 'A channel by its shape; known_channel lists those that exist';
COMMENT ON DOMAIN postern.bytes_to_1024 IS 'At most 1024 bytes';
COMMENT ON DOMAIN postern.bytes_to_4096 IS 'At most 4096 bytes';
COMMENT ON DOMAIN postern.bytes_to_4300 IS 'At most 4300 bytes';
COMMENT ON DOMAIN postern.bytes_to_65536 IS 'At most 65536 bytes';
COMMENT ON DOMAIN postern.bytes_4 IS 'Exactly 4 bytes';
COMMENT ON DOMAIN postern.bytes_16 IS 'Exactly 16 bytes';
COMMENT ON DOMAIN postern.bytes_32 IS 'Exactly 32 bytes';
COMMENT ON DOMAIN postern.bytes_64 IS 'Exactly 64 bytes';
COMMENT ON DOMAIN postern.chars_to_64 IS 'At most 64 characters';
COMMENT ON DOMAIN postern.chars_to_100 IS 'At most 100 characters';
COMMENT ON DOMAIN postern.chars_to_256 IS 'At most 256 characters';
COMMENT ON DOMAIN postern.text_to_3 IS 'At most 3 bytes';
COMMENT ON DOMAIN postern.text_to_35 IS 'At most 35 bytes';
COMMENT ON DOMAIN postern.text_to_100 IS 'At most 100 bytes';
COMMENT ON DOMAIN postern.text_to_200 IS 'At most 200 bytes';
COMMENT ON DOMAIN postern.text_to_253 IS 'At most 253 bytes';
COMMENT ON DOMAIN postern.text_to_300 IS 'At most 300 bytes';
COMMENT ON DOMAIN postern.text_to_400 IS 'At most 400 bytes';
COMMENT ON DOMAIN postern.text_to_512 IS 'At most 512 bytes';
COMMENT ON DOMAIN postern.text_to_2000 IS 'At most 2000 bytes';
COMMENT ON DOMAIN postern.text_to_4096 IS 'At most 4096 bytes';
COMMENT ON DOMAIN postern.text_43 IS 'Exactly 43 bytes';

RESET ROLE;
