\set i :i + 1
select outcome, handle, sends_left, limit_ord, retry_after, granted
  from postern.record_sent_request(
       bench.uid('realm',1), uuid_send(bench.uid('request'||:run||':'||:client_id||':', :i)), null, 'otp',
       'nobody'||:run||'-'||:client_id||'-'||:i||'@example.net',
       'nobody'||:run||'-'||:client_id||'-'||:i||'@example.net', null, null, null, null, null, null,
       '192.0.2.1', null, null, 600, 5,
       array['native-otp|target|nobody'||:run||'-'||:client_id ||'-'||:i||'@example.net|192.0.2.1',
             'native-otp|target-total|nobody'||:run ||'-'||:client_id||'-'||:i||'@example.net'],
       '{1,1}', '{1000000,1000000}', '{60,60}', '{1000000,1000000}', 3000, 3600, 1000);
