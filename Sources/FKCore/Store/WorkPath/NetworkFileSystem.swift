import CSystem
import Foundation

/// Recognises file systems that several machines share. A lock on them may be invisible to another machine (flock(2)
/// under NFS, nfs(5)), and each small write crosses the network.
package enum NetworkFileSystem {
    /// The numbers of statfs(2) and the kernel's headers.
    private static let magics: [UInt32: String] = [
        0x6969: "NFS", 0x517b: "SMB", 0xfe53_4d42: "SMB", 0xff53_4d42: "SMB", 0x0bd0_0bd0: "Lustre",
        0x4750_4653: "GPFS", 0x5346_414f: "AFS", 0x00c3_6400: "Ceph", 0x0102_1997: "9P", 0x1983_0326: "BeeGFS",
        0xaad7_aaea: "PanFS", 0x7461_636f: "OCFS2", 0x0116_1970: "GFS2", 0x5461_636f: "OCFS2", 0x7375_7245: "Coda",
        0x2003_0528: "OrangeFS",
    ]

    private static let fuse: UInt32 = 0x6573_5546

    /// The file systems over FUSE that are on other machines, by their type in /proc/mounts after `fuse.`.
    private static let overFUSE: Set<String> = [
        "sshfs", "s3fs", "glusterfs", "gcsfuse", "goofys", "rclone", "juicefs", "ceph", "ceph-fuse", "mount.davfs",
        "davfs", "blobfuse", "blobfuse2", "mount-s3", "moosefs", "mfs", "seaweedfs", "curlftpfs", "geesefs",
    ]

    /// The name of the network file system that the path is on; nil for a local or unknown one.
    package static func name(of path: String) -> String? {
        #if canImport(Darwin)
            var status = statfs()
            guard statfs(path, &status) == 0 else { return nil }
            let type = withUnsafeBytes(of: status.f_fstypename) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            return name(ofType: type)
        #else
            let magic = fk_file_system(path)
            guard magic == fuse else { return name(ofMagic: magic) }
            return type(of: path, in: mounts()).flatMap(name(ofType:))
        #endif
    }

    /// True if this machine's clock sets the times of files there, as far as is known. Over FUSE it may be the clock of a server
    /// or of a virtual machine's host.
    package static func hasOwnClock(_ path: String) -> Bool {
        #if canImport(Darwin)
            name(of: path) == nil
        #else
            fk_file_system(path) != fuse && name(of: path) == nil
        #endif
    }

    /// The mounts of this process, a line each; empty on other systems than Linux.
    static func mounts() -> String { (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? "" }

    static func name(ofMagic magic: UInt32) -> String? { magics[magic] }

    /// - Parameter type: as mount(8) prints it.
    package static func name(ofType type: String) -> String? {
        switch type {
        case "nfs", "nfs4": "NFS"
        case "smbfs", "cifs": "SMB"
        case "afpfs": "AFP"
        case "webdav": "WebDAV"
        case let type where type.hasPrefix("fuse.") && overFUSE.contains(String(type.dropFirst(5))):
            String(type.dropFirst(5))
        default: nil
        }
    }

    /// The type of the mount that contains the path: that of the deepest mount point.
    ///
    /// - Parameter mounts: the lines of /proc/mounts. Spaces in mount points are written as \040.
    package static func type(of path: String, in mounts: String) -> String? {
        var best: (length: Int, type: String)?
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count >= 3 else { continue }
            let point = fields[1].replacingOccurrences(of: "\\040", with: " ")
            let folder = point == "/" ? "/" : point + "/"
            guard (path + "/").utf8.starts(with: folder.utf8), folder.utf8.count >= best?.length ?? 0 else { continue }
            best = (folder.utf8.count, String(fields[2]))
        }
        return best?.type
    }

    /// What to say once about a work path on a network file system; nil for a local one.
    package static func warning(_ workPath: WorkPath) -> String? {
        name(of: workPath.root).map {
            "The work path \(workPath.root) is on a network file system (\($0)). Its locks may not reach other machines: use "
                + "it from one machine at a time, or choose a work path on a local disk. The files themselves may be there."
        }
    }
}
