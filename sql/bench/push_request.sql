\set i :i + 1
select outcome, limit_ord, retry_after, granted
  from postern.push_request(
       bench.uid('realm',1), NULL, NULL, sha256(int4send(:run)||int4send(:client_id)||int4send(:i)), bench.web(),
       '192.0.2.1', decode(repeat('ab', 400), 'hex'), 120);
