## A person works with `berth` alone: look, change, wait, remove, and what goes wrong on the way.
$ berth create namespace shop
namespace/shop created
$ berth apply -f test/integration/manifests/tour.yaml
Warning: namespace/shop was not made by apply; fields that it has and the manifest lacks stay
namespace/shop configured
machineclass.compute.ironcore.dev/small created
volumeclass.storage.ironcore.dev/fast created
volume.storage.ironcore.dev/data created
machine.compute.ironcore.dev/web created
$ berth apply -f test/integration/manifests/tour.yaml
namespace/shop unchanged
machineclass.compute.ironcore.dev/small unchanged
volumeclass.storage.ironcore.dev/fast unchanged
volume.storage.ironcore.dev/data unchanged
machine.compute.ironcore.dev/web unchanged
$ berth get machines -n shop -o wide
NAME   MACHINECLASSREF   IMAGE                            MACHINEPOOLREF   STATE     AGE
web    small             registry.example.org/debian:12   <none>           Pending   …
$ berth get machine/web -n shop -o jsonpath='{.spec.volumes[*].device}'
oda odb
$ berth get machine web -n shop -o name
machine.compute.ironcore.dev/web
$ berth get machines -A --no-headers
shop   web   small   registry.example.org/debian:12   <none>   Pending   …
$ berth label machine web -n shop tier=front
machine.compute.ironcore.dev/web labeled
$ berth get machines -A -l tier=front -o name
machine.compute.ironcore.dev/web
$ berth patch machine web -n shop --type merge -p '{"spec":{"power":"Off"}}'
machine.compute.ironcore.dev/web patched
$ berth get machine web -n shop -o jsonpath='{.spec.power}'
Off
$ berth patch machine web -n shop --type merge -p '{"spec":{"power":"Maybe"}}'
error: Machine.compute.ironcore.dev "web" is invalid: spec.power: Unsupported value: "Maybe": supported values: "On", "Off"
next: see the fields and their rules: berth explain KIND
[1]
$ berth annotate machine web -n shop note='hello world'
machine.compute.ironcore.dev/web annotated
$ berth describe machine web -n shop
Name:         web
Namespace:    shop
Kind:         Machine (compute.ironcore.dev/v1alpha1)
Labels:       app=web
              tier=front
Annotations:  note=hello world
Created:      …
UID:          …
Spec:
  machineClassRef:
    name: small
  power: Off
  networkInterfaces:
  - name: primary
    networkInterfaceRef:
      name: web-primary
  volumes:
  - name: root
    device: oda
    localDisk:
      sizeLimit: 10Gi
      image: registry.example.org/debian:12
  - name: data
    device: odb
    volumeRef:
      name: data
Status:
  state: Pending
…
$ berth explain machine.spec.power
GROUP:      compute.ironcore.dev
KIND:       Machine
VERSION:    v1alpha1

FIELD: power <string>
enum: On, Off

DESCRIPTION:
    On or Off.
$ berth auth can-i create machines
yes
$ berth get machine nothing -n shop
error: machines.compute.ironcore.dev "nothing" not found
[3]
$ berth get machins
error: the server has no kind "machins"; did you mean "machines"?
next: berth api-resources lists the kinds
[3]
$ berth gte machines
error: unknown command "gte" for "berth"; did you mean "get"?
next: see berth --help
[2]
$ berth get machines --slector a=b
error: unknown flag --slector; did you mean --selector?
next: see berth get --help
[2]
$ berth delete machine web -n shop
machine.compute.ironcore.dev "web" deleted
$ berth get machines -n shop
No resources found in shop namespace.
$ berth version --client
Client Version: v0.1.0
