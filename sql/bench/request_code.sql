\set i :i + 1
select outcome, handle, sends_left, limit_ord, retry_after, granted
  from postern.record_sent_request(
       ROW(bench.uid('realm',1), NULL, NULL, '192.0.2.1', NULL, NULL, NULL)::postern.caller,
       ROW(array['native-otp|target|nobody'||:run||'-'||:client_id ||'-'||:i||'@example.net|192.0.2.1',
                 'native-otp|target-total|nobody'||:run ||'-'||:client_id||'-'||:i||'@example.net'],
           '{1,1}', '{1000000,1000000}', '{60,60}', '{1000000,1000000}')::postern.permits,
       ROW(uuid_send(bench.uid('request'||:run||':'||:client_id||':', :i)), NULL, 'otp',
           'stranger'||:run||'-'||:client_id||'-'||:i||'@example.net',
           'stranger'||:run||'-'||:client_id||'-'||:i||'@example.net', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 600,
           5)::postern.new_request,
       ROW(3000, 3600, 1000)::postern.budget);
