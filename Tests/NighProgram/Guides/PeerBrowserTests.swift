import ChildPrograms
import Foundation
import NighTestKit
import Testing

/// Examples/PeerBrowser, which shows a browser, an assistant and the progress of files in the terminal.
@Suite("The peer browser in a terminal", .callsPrograms) struct PeerBrowserTests {
    private func start(_ name: String, in folder: URL) throws -> Child {
        let program = try BuiltPackages.build("Examples/PeerBrowser") + "/PeerBrowser"
        return try Child(
            "/usr/bin/env", ["-C", folder.path, "stdbuf", "-oL", program, name],
            environment: ["NIGH_TRANSPORTS": "tcp:interface=lo,mdns=embedded"], reads: true)
    }

    @Test("has a peer invited, who declines and then accepts, and shows a file's way there")
    func exchange() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "browser-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try content.write(to: folder.appendingPathComponent("film"))
        let puma = try start("Puma", in: folder)
        let lynx = try start("Lynx", in: folder)
        try puma.line(with: "1 Lynx")
        puma.type("1")
        try puma.line(with: "1 Lynx", "connecting")
        try lynx.line(with: "Puma invites you")
        lynx.type("n")
        try puma.line(with: "1 Lynx", "not connected")
        puma.type("1")
        try lynx.line(with: "Puma invites you", occurrence: 2)
        lynx.type("y")
        try puma.line(with: "1 Lynx", "  connected")
        try lynx.line(with: "Puma is connected")
        puma.type("film")
        try puma.line(with: "film to Lynx", "%")
        try lynx.line(with: "film from Puma: is here as received-film")
        try puma.line(with: "film to Lynx: sent")
        #expect(try Data(contentsOf: folder.appendingPathComponent("received-film")) == content)
        puma.closeInput()
        try lynx.line(with: "Puma is not connected")
        lynx.type("q")
        for child in [puma, lynx] { #expect(try child.end().status == 0) }
    }
}
