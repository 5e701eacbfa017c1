//! An ordinary program's head.

magpie::entry!(application);

async fn application() {}
