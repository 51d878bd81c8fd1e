\ir ../helpers/fixture.psql
SELECT no_plan();
SET LOCAL ROLE app_login;
SELECT is(postern.person_name(v.typed), v.stored, v.what) FROM (VALUES
    (E' Ada \t', 'Ada', 'white space around goes'), (E'\u00a0\u3000Ada\u2003', 'Ada', 'of any script'),
        (E'\u2028Ada\r\n', 'Ada', 'line separators too'),
    ('Ada Maria', 'Ada Maria', 'inside it stays'), ('', NULL, 'nothing is no name'),
        (E' \t\u00a0', NULL, 'nor is white space'),
    (repeat('x', 100), repeat('x', 100), 'a hundred code points'), (repeat('x', 101), NULL, 'not one more'),
        (repeat(U&'\+01f600', 64), repeat(U&'\+01f600', 64), 'of any size'),
        (repeat(U&'\+01f600', 64) || 'x', NULL, 'not one byte more than 256'),
    (E' \u0301x', NULL, 'a combining mark does not come first, whatever is before it'),
        (E'e\u0301', E'e\u0301', 'it may come later'), (E'\u0903x', NULL, 'a spacing one neither'),
    (E'\u200d', NULL, 'nor a joiner'), (E'a\tb', NULL, 'no control'), (E'a\u0085b', NULL, 'of either set'),
        (E'a\u2028b', NULL, 'no line separator'), (E'a\u202eb', NULL, 'no override'), (E'a\u2066b', NULL, 'no isolate'),
    (E'\u200f', NULL, 'a mark of direction alone cannot be seen'),
        (E'\u2060\u200b\ufeff', NULL, 'nor can blanks of no width'), (E'\u2800', NULL, 'nor a Braille blank'),
        (U&'\+0e0041', NULL, 'nor a tag'), (E'\ufeffAda\u200b', 'Ada', 'what cannot be seen around a name goes'),
        (E'\u202aAda\u202c', NULL, 'an override does not go'),
    (U&'\+01f469\200d\+01f4bb laptop', U&'\+01f469\200d\+01f4bb laptop', 'joiners make up emoji'),
        (U&'\+01f3f3\fe0f\200d\+01f308', U&'\+01f3f3\fe0f\200d\+01f308', 'and flags'),
        (U&'\2764\fe0f', U&'\2764\fe0f', 'whose last code point stays'),
        (U&'\+01f3f4\+0e0067\+0e0062\+0e007f', U&'\+01f3f4\+0e0067\+0e0062\+0e007f', 'tags too'),
        (E'\u06af\u0648\u0634\u06cc\u200c\u0645\u0646', E'\u06af\u0648\u0634\u06cc\u200c\u0645\u0646', 'and Persian words'),
        (repeat(E'\u200b', 400), NULL, 'a long text is not looked at'),
    ('O''Brien', 'O''Brien', 'quotes are'),
        (NULL, NULL, 'NULL is NULL')) AS v (typed, stored, what);
-- Whatever is a name can be stored.
SELECT is(count(*), 0::bigint, 'user_account takes each of them') FROM generate_series(1, 65535) AS c
 WHERE c NOT BETWEEN 55296 AND 57343 AND postern.person_name(chr(c)) IS NOT NULL
   AND NOT postern.is_plain_text(postern.person_name(chr(c)), 100);
SELECT * FROM finish();
ROLLBACK;
