import NATSServers
import NighCore
import NighTestKit
import Testing

@testable import NighNATS

@Suite(.serialized) struct CredentialsTests {
    // An operator, an account and a user, made for this test from seeds of equal bytes.
    private static let operatorJWT =
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJBIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJPQ"
        + "0ZJUlk2NU9RRTdERlA1S0xOUzJQRjJMVlpNVVpZSlg0T1pJRVEzNk4ySVFBTlVCNVhWWU9DUyIsIm5hbWUiOiJvIiwic3ViI"
        + "joiT0NGSVJZNjVPUUU3REZQNUtMTlMyUEYyTFZaTVVaWUpYNE9aSUVRMzZOMklRQU5VQjVYVllPQ1MiLCJuYXRzIjp7InR5c"
        + "GUiOiJvcGVyYXRvciIsInZlcnNpb24iOjJ9fQ.jR2p_iAt5MOTqHR6e6ntjQgkqCgwl9RkAnWUuADg9ttIC0U4JZ26NP-4fR"
        + "E9fE00nn3cJ2U_iWhIuvSK0I2xCA"
    private static let accountJWT =
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJBIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJPQ"
        + "0ZJUlk2NU9RRTdERlA1S0xOUzJQRjJMVlpNVVpZSlg0T1pJRVEzNk4ySVFBTlVCNVhWWU9DUyIsIm5hbWUiOiJhIiwic3ViI"
        + "joiQUNBVFM1WU9WQjZST1gyV1VOS0dOUTJNUDNHTVhETUtTRzJPNE41Q0xYM0E2VzRQWkdaWklMMlIiLCJuYXRzIjp7Imxpb"
        + "Wl0cyI6eyJzdWJzIjotMSwiZGF0YSI6LTEsInBheWxvYWQiOi0xLCJpbXBvcnRzIjotMSwiZXhwb3J0cyI6LTEsIndpbGRjY"
        + "XJkcyI6dHJ1ZSwiY29ubiI6LTEsImxlYWYiOi0xfSwidHlwZSI6ImFjY291bnQiLCJ2ZXJzaW9uIjoyfX0.Bzz1p5boHHlFg"
        + "yb-ZFaY7DxmghM7qbVzbdmrIooCpgTbSQkHvYeqMPhxwW_JhHVQjXaczg9ZwuuWjiWCLNrrCQ"
    private static let userJWT =
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJqdGkiOiJBIiwiaWF0IjoxNzAwMDAwMDAwLCJpc3MiOiJBQ"
        + "0FUUzVZT1ZCNlJPWDJXVU5LR05RMk1QM0dNWERNS1NHMk80TjVDTFgzQTZXNFBaR1paSUwyUiIsIm5hbWUiOiJ1Iiwic3ViI"
        + "joiVURXVVNLR0dGREk0RlJYSzVFQlRSRUNaU1ZRU1NXSkhISk9HSDZKV0czQVVNRkZNUTQzNUMyVTQiLCJuYXRzIjp7InB1Y"
        + "iI6e30sInN1YiI6e30sInN1YnMiOi0xLCJkYXRhIjotMSwicGF5bG9hZCI6LTEsInR5cGUiOiJ1c2VyIiwidmVyc2lvbiI6M"
        + "n19.BXkrviuz4A2tGDUX3t09bU1_xWFa3YZM_UHGod2LF5iCjLXsnCTEgTYz8xDEue7-lcm1iJgydLj44alpmoHsAw"
    private static let account = "ACATS5YOVB6ROX2WUNKGNQ2MP3GMXDMKSG2O4N5CLX3A6W4PZGZZIL2R"
    private static let userSeed = "SUAAGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGA6BEM"
    private static let credentials = """
        -----BEGIN NATS USER JWT-----
        \(userJWT)
        ------END NATS USER JWT------

        ************************* IMPORTANT *************************
        NKEY Seed printed below can be used to sign and prove identity.

        -----BEGIN USER NKEY SEED-----
        \(userSeed)
        ------END USER NKEY SEED------
        """

    @Test(arguments: NATSServer.Version.allCases) func `A .creds file admits its user, and no other one`(
        _ version: NATSServer.Version
    ) throws {
        let folder = TemporaryFolder()
        let server = try NATSServer(
            version,
            """
            operator: "\(Self.operatorJWT)"
            resolver: MEMORY
            resolver_preload: { \(Self.account): "\(Self.accountJWT)" }
            """)
        let right = try Client(of: server, credentials: folder.file("right.creds", Self.credentials))
        #expect(right.subscribe(to: "nigh.one"))
        // The seed of another user does not prove who this one is.
        let other = "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y"
        let text = Self.credentials.split(separator: Self.userSeed).joined(separator: other)
        let wrong = try Client(startedFor: server.address, credentials: folder.file("wrong.creds", text))
        #expect(try wrong.problem().cause == .unavailable("the server does not accept these credentials"))
    }

    @Test func `Each form of a credentials file is recognised, and nothing else is`() {
        func credentials(_ text: String) -> NATSCredentials? {
            NATSCredentials(SecretBytes(copying: Array(text.utf8)))
        }
        func text(_ bytes: SecretBytes) -> String {
            bytes.withBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
        }
        guard case .jwt(let jwt, let seed) = credentials(Self.credentials) else {
            Issue.record("no .creds file")
            return
        }
        #expect(text(jwt) == Self.userJWT && text(seed) == Self.userSeed)
        guard case .password(let password, let user) = credentials("user=me\r\npassword= with = signs \r\n")
        else {
            Issue.record("no password")
            return
        }
        #expect(text(user) == "me" && text(password) == " with = signs")
        guard case .token(let token) = credentials("# token=old\n  token=new\n") else {
            Issue.record("no token")
            return
        }
        #expect(text(token) == "new")
        guard case .nkey = credentials("# mine\n\(Self.userSeed)\n") else {
            Issue.record("no seed")
            return
        }
        let damaged = "SUAAGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGA6BEA"
        for text in ["", "\n", "user=me", "password=x", "token=", damaged, String(repeating: "S", count: 58)]
        {
            #expect(credentials(text) == nil)
        }
        // A file of a user's JWT alone proves nothing.
        #expect(credentials("-----BEGIN NATS USER JWT-----\n\(Self.userJWT)\n") == nil)
    }
}
