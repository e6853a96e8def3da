import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/Camera, a stream with back-pressure.
@Suite("The camera", .callsPrograms) struct CameraTests {
    @Test("is watched by two who see whole pictures, and ends in good order")
    func pictures() throws {
        let program = try BuiltPackages.build("Examples/Camera") + "/Camera"
        let users = (0..<3).map { _ in TemporaryFolder() }
        let children = try zip(users, ["film", "watch", "watch"]).map { user, role in
            try Child(
                "/usr/bin/stdbuf", ["-oL", program, role, "tcp:interface=lo,mdns=embedded"],
                environment: ["XDG_DATA_HOME": user.path], reads: true)
        }
        for watcher in children.dropFirst() { try watcher.line(with: "25 pictures seen") }
        for child in children.reversed() {
            child.send(SIGINT)
            #expect(try child.end().status == 0)
        }
    }
}
