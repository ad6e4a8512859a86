//! Statements of SQL Server and DuckDB, which are checked here and run elsewhere.

use super::cases_tests::policy;
use super::*;

/// S4.04
#[test]
fn sql_server_and_duckdb_statements_are_checked_in_their_own_words() {
    let tsql = guard(
        "SELECT TOP 5 z.name, DATEPART(year, t.changed_at) AS y FROM zones z CROSS APPLY (SELECT TOP 1 * FROM transitions t WHERE t.zone = z.name) t WHERE t.changed_at > DATEADD(day, -7, GETDATE()) ORDER BY y",
        Dialect::TSql,
        &policy(),
    );
    let tsql = tsql.unwrap();
    assert!(tsql.as_str().contains("DATEPART(year, [t].[changed_at])"), "{}", tsql.as_str());
    let binary = guard("SELECT 0x1F AS b", Dialect::TSql, &policy()).unwrap();
    assert_eq!(binary.as_str(), "SELECT 0x1F AS [b]");
    for sql in [
        "EXEC xp_cmdshell 'dir'",
        "SELECT * FROM OPENROWSET('a', 'b', 'c')",
        "SELECT 1 FROM sys.objects",
    ] {
        guard(sql, Dialect::TSql, &policy()).unwrap_err();
    }
    guard(
        "SELECT date_trunc('month', changed_at) AS m, count(*) FROM transitions GROUP BY ALL",
        Dialect::DuckDb,
        &policy(),
    )
    .unwrap_err();
    guard(
        "SELECT date_trunc('month', changed_at) AS m, count(*) FROM transitions GROUP BY m",
        Dialect::DuckDb,
        &policy(),
    )
    .unwrap();
    for sql in [
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM read_csv('x')",
        "SELECT getenv('HOME')",
        "COPY zones TO 'x'",
    ] {
        guard(sql, Dialect::DuckDb, &policy()).unwrap_err();
    }
}

#[test]
fn sql_server_accepts_a_recursion_limit_and_its_table_of_numbers() {
    let deep = "WITH days AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM days WHERE n < 500) \
                SELECT n FROM days ORDER BY n OPTION ( maxrecursion 1000 );";
    let written = guard(deep, Dialect::TSql, &policy()).unwrap();
    assert!(written.as_str().ends_with(" OPTION (MAXRECURSION 1000)"), "{}", written.as_str());
    let counted =
        "SELECT number FROM master..spt_values WHERE type = 'P' AND number BETWEEN 0 AND 5";
    let written = guard(counted, Dialect::TSql, &policy()).unwrap();
    assert!(written.as_str().contains("FROM [master].[dbo].[spt_values]"), "{}", written.as_str());
    assert!(written.tables().is_empty());
    let shadowed = "WITH recent AS (SELECT zone FROM zones), zones AS (SELECT zone FROM recent) SELECT zone FROM zones";
    let written = guard(shadowed, Dialect::TSql, &policy()).unwrap();
    assert_eq!(written.tables().len(), 1);
    for refused in [
        "SELECT 1 OPTION (MAXRECURSION 40000)",
        "SELECT 1 OPTION (MAXRECURSION 5, RECOMPILE)",
        "SELECT 1 OPTION (USE PLAN 'x')",
        "SELECT 1 WHERE EXISTS (SELECT 1 OPTION (MAXRECURSION 5))",
        "DELETE FROM zones OPTION (MAXRECURSION 5)",
        "SELECT 1 FROM master..sysobjects",
        "SELECT 1 FROM other.master..spt_values",
        "SELECT 1 FORMAT JSON",
    ] {
        guard(refused, Dialect::TSql, &policy()).unwrap_err();
    }
    guard("SELECT 1 FROM master.dbo.spt_values", Dialect::Postgres, &policy()).unwrap_err();
    guard("SELECT 1 OPTION (MAXRECURSION 5)", Dialect::Postgres, &policy()).unwrap_err();
}
