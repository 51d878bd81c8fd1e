import Testing

@testable import Persistence

@Suite("The way to the database")
struct TransportSecurityTests {
    @Test(arguments: [
        "host=/run/postgresql", "host=@abstract", "host=localhost user=x", "host=LOCALHOST", "host=127.0.0.1",
        "host=127.8.9.10",
        "host=::1", "postgresql://u@[::1]:5432/d", "host=::ffff:127.0.0.1", "hostaddr=127.0.0.1", "postgresql:///d",
        "postgresql://u@/d?host=%2Ftmp%2Fx", "host=/a,localhost,127.0.0.1", "dbname=d",
        "host=db.example sslmode=verify-full", "host=db.example sslmode=disable",
        "postgresql://db.example/d?sslmode=require",
        "service=x sslmode=verify-full",
    ])
    func `is taken as it is`(conninfo: String) {
        #expect(TransportSecurity.problem(with: conninfo) == nil)
    }

    @Test(arguments: [
        "host=db.example", "postgresql://u:p@db.example/d", "host=10.0.0.1", "hostaddr=10.0.0.1", "host=2001:db8::1",
        "host=/run/postgresql,db.example", "host=db.example hostaddr=127.0.0.1", "host=localhost hostaddr=10.0.0.1",
        "host=127.0.0.1.evil.example", "host=localhost.evil.example", "host=127.1.evil", "service=x",
    ])
    func `needs an sslmode`(conninfo: String) throws {
        let problem = try #require(TransportSecurity.problem(with: conninfo))
        #expect(problem.contains("sslmode=verify-full"))
        #expect(!problem.contains("\n"))
    }

    @Test func `the line names the remote hosts and no password`() throws {
        let problem = try #require(
            TransportSecurity.problem(with: "postgresql://u:secret@localhost,a.example,b.example/d"))
        #expect(problem.contains("a.example, b.example is not this machine"))
        #expect(!problem.contains("secret"))
    }

    @Test func `what cannot be read is left to the connection to refuse`() {
        #expect(TransportSecurity.problem(with: "nonsense=1 =") == nil)
    }
}
