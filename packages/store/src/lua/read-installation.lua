-- Returns the time of Redis and all fields of the record of the installation. The key is the record itself.
--@include format-of
--@include redis-ms

return {redisMs(), formatOf('format'), formatOf('oldest_format'), call('HGETALL', prefix)}
