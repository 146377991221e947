-- Returns {time of Redis, format, oldest stored format, all fields of the record of the installation}. It is one script
-- so that all are of the same moment. The record is at the declared key itself.
--@include format-of
--@include redis-ms

return {redisMs(), formatOf('format'), formatOf('oldest_format'), call('HGETALL', prefix)}
