import Testing

@testable import nigh

@Suite("The check of a Wi-Fi that keeps its devices apart") struct WebCheckTests {
    private static let route = [["wlan0", "00000000", "0101A8C0", "0003"]]

    private static func neighbour(_ address: String, _ flags: String = "0x2") -> [String] {
        [address, "0x1", flags, "00:11:22:33:44:55", "*", "wlan0"]
    }

    private func finding(_ neighbours: [[String]], _ routes: [[String]] = route) -> String? {
        WebCheck.isolation(neighbours: neighbours, routes: routes) { $0 == "wlan0" }?.finding
    }

    @Test("says so if nobody but the router is seen there")
    func alone() {
        let alone = finding([Self.neighbour("192.168.1.1"), Self.neighbour("192.168.1.9", "0x0")])
        #expect(alone?.contains("client isolation") == true)
        #expect(finding([])?.contains("client isolation") == true)
    }

    @Test("says how many others are seen")
    func others() {
        let neighbours = [Self.neighbour("192.168.1.1"), Self.neighbour("192.168.1.7")]
        #expect(finding(neighbours) == "1 seen on wlan0")
    }

    @Test("says nothing of a wire")
    func wired() { #expect(finding([], [["eth0", "00000000", "0101A8C0", "0003"]]) == nil) }
}
