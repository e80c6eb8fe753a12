// swift-tools-version: 6.0
import PackageDescription

// Each example is a program of an application's package: it sees the public declarations of the products only. `make examples`
// builds and runs all of them.
let core: Target.Dependency = .product(name: "FKCore", package: "FKDownloader")
let compatibility: Target.Dependency = .product(name: "FKCompatibility", package: "FKDownloader")
let manifests: Target.Dependency = .product(name: "FKManifests", package: "FKDownloader")
let middleware: Target.Dependency = .product(name: "FKMiddleware", package: "FKDownloader")

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "FKDownloader", path: "..")],
    targets: [
        .executableTarget(name: "BarrelProgress", dependencies: [core, middleware], path: "BarrelProgress"),
        .executableTarget(name: "CustomMiddleware", dependencies: [core, middleware], path: "CustomMiddleware"),
        .executableTarget(name: "FetchList", dependencies: [core, manifests, middleware], path: "FetchList"),
        .executableTarget(name: "FileService", dependencies: [core, middleware], path: "FileService"),
        .executableTarget(name: "FormerCalls", dependencies: [compatibility, core, middleware], path: "FormerCalls"),
        .executableTarget(name: "FreshLink", dependencies: [core, middleware], path: "FreshLink"),
        .executableTarget(name: "Migrated", dependencies: [core, middleware], path: "Migrated"),
        .executableTarget(name: "ModelDownloader", dependencies: [core, middleware], path: "ModelDownloader"),
        .executableTarget(name: "OneFile", dependencies: [core, middleware], path: "OneFile"),
        .executableTarget(name: "PassThrough", dependencies: [core, middleware], path: "PassThrough"),
        .executableTarget(name: "PhotoList", dependencies: [core, middleware], path: "PhotoList"),
        .executableTarget(name: "PlayWhileLoading", dependencies: [core, middleware], path: "PlayWhileLoading"),
        .executableTarget(name: "PollingInfo", dependencies: [core, middleware], path: "PollingInfo"),
        .executableTarget(name: "SwiftProgram", path: "SwiftProgram"),
        .executableTarget(name: "TaskView", dependencies: [core, middleware], path: "TaskView"),
        .executableTarget(name: "TwoProcesses", dependencies: [core, middleware], path: "TwoProcesses"),
    ],
    swiftLanguageModes: [.v6]
)
