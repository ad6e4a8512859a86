-- What is sent again is sent with the same bytes: jsonb keeps neither the order of fields nor how a number is written.
ALTER TABLE service_delivery ALTER COLUMN payload TYPE json USING payload::json;
