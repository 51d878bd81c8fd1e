\ir ../helpers/setup.psql
-- What psql says of admin.set_rate_limit names everything that it takes.
BEGIN;
SELECT no_plan();
SELECT is(ARRAY(SELECT p.policy FROM postern.rate_limit_policy AS p
                 WHERE obj_description('admin.set_rate_limit'::regproc) !~ ('\m' || p.policy || '\M')
                 GROUP BY p.policy ORDER BY p.policy), '{}', 'each policy');
SELECT is(ARRAY(SELECT p.dimension FROM postern.rate_limit_policy AS p
                 WHERE obj_description('admin.set_rate_limit'::regproc) !~ ('\m' || p.dimension || '\M')
                 GROUP BY p.dimension ORDER BY p.dimension), '{}', 'each dimension');
SELECT * FROM finish();
ROLLBACK;
