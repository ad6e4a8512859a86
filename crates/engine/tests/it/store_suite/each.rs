//! Runs tests on several stores.

/// Runs each named test on each store.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        $crate::store_suite::on_store!(memory on memory: $($name),+);
        $crate::store_suite::on_store!(sqlite on sqlite: $($name),+);
        $crate::store_suite::on_store!(postgres on postgres: $($name),+);
    };
}

/// Runs each named test on each store, and on the durable ones with everything encrypted.
macro_rules! on_every_store_sealed_too {
    ($($name:ident),+ $(,)?) => {
        $crate::store_suite::on_every_store!($($name),+);
        $crate::store_suite::on_store!(sealed_sqlite on sealed_sqlite: $($name),+);
        $crate::store_suite::on_store!(sealed_postgres on sealed_postgres: $($name),+);
    };
}

/// Runs each named test on the stores that outlive their process.
macro_rules! on_durable_stores {
    ($($name:ident),+ $(,)?) => {
        $crate::store_suite::on_store!(durable_sqlite on sqlite: $($name),+);
        $crate::store_suite::on_store!(durable_postgres on postgres: $($name),+);
    };
}

macro_rules! on_store {
    ($module:ident on $store:ident: $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $name() {
                    let fixture = $crate::store_suite::stores::$store().await;
                    super::$name(&fixture).await;
                    fixture.store.close().await;
                }
            )+
        }
    };
}

pub(crate) use {on_durable_stores, on_every_store, on_every_store_sealed_too, on_store};
