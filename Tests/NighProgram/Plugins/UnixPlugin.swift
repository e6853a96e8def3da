import ChildPrograms
import Glibc
import NighTestKit

/// The transport of Examples/UnixTransport, and a folder in which its users meet.
struct UnixPlugin {
    /// The plugin.
    let path: String
    let meetingPlace = TemporaryFolder()
    var spec: String { "unix:folder=\(meetingPlace.path)" }

    init() throws { path = try BuiltPackages.build("Examples/UnixTransport") + "/libUnixTransport.so" }

    /// Puts a copy where it may be found.
    func install(to path: String) throws {
        let copy = try Child("/bin/cp", [self.path, path])
        guard try copy.end().status == 0, chmod(path, 0o755) == 0 else {
            throw Child.Failure(description: "\(path) cannot be written")
        }
    }
}
