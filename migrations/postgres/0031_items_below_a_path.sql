-- Items below a path are a range of letters, in an order that no language of the database changes.
CREATE INDEX service_item_path ON service_item (tenant, namespace COLLATE "C");
